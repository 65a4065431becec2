#include "grammar/regex/dfa.h"

#include <xxhash.h>

#include <algorithm>
#include <deque>
#include <map>
#include <tuple>
#include <unordered_map>

#include "base/check.h"

namespace banyan {
namespace {

// Redirects transitions into states that can no longer accept to the dead state, and drops
// unreachable states.
void trim(DfaTable& t) {
  uint32_t n = t.states(), k = t.classes;
  std::vector<uint32_t> begin(n + 1, 0), from(size_t{n} * k);
  for (uint32_t to : t.next) ++begin[to + 1];
  for (uint32_t s = 0; s < n; ++s) begin[s + 1] += begin[s];
  std::vector<uint32_t> fill(begin.begin(), begin.end() - 1);
  for (size_t i = 0; i < t.next.size(); ++i) from[fill[t.next[i]]++] = static_cast<uint32_t>(i / k);
  std::vector<uint8_t> live(n, 0);
  std::vector<uint32_t> queue;
  for (uint32_t s = 1; s < n; ++s) {
    if ((t.accepting[s] & kAccepts) == 0) continue;
    live[s] = 1;
    queue.push_back(s);
  }
  while (!queue.empty()) {
    uint32_t s = queue.back();
    queue.pop_back();
    for (uint32_t i = begin[s]; i < begin[s + 1]; ++i) {
      if (from[i] == 0 || live[from[i]]) continue;
      live[from[i]] = 1;
      queue.push_back(from[i]);
    }
  }
  std::vector<uint32_t> number(n, 0), order = {0};
  auto visit = [&](uint32_t s) {
    if (!live[s] || number[s] != 0) return;
    number[s] = static_cast<uint32_t>(order.size());
    order.push_back(s);
  };
  visit(t.start);
  for (size_t i = 1; i < order.size(); ++i) {
    for (uint32_t c = 0; c < k; ++c) visit(t.next[size_t{order[i]} * k + c]);
  }
  DfaTable trimmed{.class_of = t.class_of, .classes = k, .next = {}, .accepting = {}};
  trimmed.next.resize(order.size() * k);
  trimmed.accepting.resize(order.size());
  for (size_t i = 1; i < order.size(); ++i) {
    trimmed.accepting[i] = t.accepting[order[i]];
    for (uint32_t c = 0; c < k; ++c) {
      trimmed.next[i * k + c] = number[t.next[size_t{order[i]} * k + c]];
    }
  }
  trimmed.start = number[t.start];
  t = std::move(trimmed);
}

// Hopcroft's partition refinement. Blocks are ranges of `states_`; a split moves the block's marked
// states to its front.
class Partition {
 public:
  explicit Partition(const DfaTable& t) : t_(t), n_(t.states()), k_(t.classes) {}

  Status run(Budget& budget) {
    invert();
    states_.resize(n_);
    place_.resize(n_);
    block_of_.assign(n_, 0);
    for (uint32_t s = 0; s < n_; ++s) states_[s] = place_[s] = s;
    blocks_.push_back({0, n_, 0});
    for (uint8_t label : {uint8_t{kAccepts}, uint8_t{kCharacterEnd}}) {
      for (uint32_t s = 0; s < n_; ++s) {
        if ((t_.accepting[s] & label) != 0) mark(s);
      }
      split_touched();
    }
    if (blocks_.size() == 1) add_work(0);
    while (!work_.empty()) {
      auto [block, c] = work_.back();
      work_.pop_back();
      waiting_[size_t{block} * k_ + c] = 0;
      refine(block, c);
      TRY(budget.spend("minimizing a pattern", sources_.size() + 1));
    }
    return {};
  }
  uint32_t block_of(uint32_t s) const { return block_of_[s]; }
  uint32_t blocks() const { return static_cast<uint32_t>(blocks_.size()); }

 private:
  struct Block {
    uint32_t begin, end, marked;
  };

  void invert() {
    begin_.assign(size_t{n_} * k_ + 1, 0);
    from_.resize(t_.next.size());
    auto slot = [&](size_t i) { return size_t{t_.next[i]} * k_ + i % k_; };
    for (size_t i = 0; i < t_.next.size(); ++i) ++begin_[slot(i) + 1];
    for (size_t i = 1; i < begin_.size(); ++i) begin_[i] += begin_[i - 1];
    std::vector<uint32_t> fill(begin_.begin(), begin_.end() - 1);
    for (size_t i = 0; i < t_.next.size(); ++i) {
      from_[fill[slot(i)]++] = static_cast<uint32_t>(i / k_);
    }
  }

  void mark(uint32_t s) {
    Block& b = blocks_[block_of_[s]];
    uint32_t front = b.begin + b.marked;
    if (place_[s] < front) return;
    if (b.marked++ == 0) touched_.push_back(block_of_[s]);
    uint32_t other = states_[front];
    std::swap(states_[front], states_[place_[s]]);
    place_[other] = place_[s];
    place_[s] = front;
  }

  void split_touched() {
    for (uint32_t index : touched_) {
      Block& b = blocks_[index];
      uint32_t marked = b.marked;
      b.marked = 0;
      if (marked == b.end - b.begin) continue;
      auto fresh = static_cast<uint32_t>(blocks_.size());
      Block part{b.begin, b.begin + marked, 0};
      b.begin += marked;
      bool part_is_small = marked <= b.end - b.begin;
      blocks_.push_back(part);
      for (uint32_t i = part.begin; i < part.end; ++i) block_of_[states_[i]] = fresh;
      waiting_.resize(blocks_.size() * k_, 0);
      for (uint32_t c = 0; c < k_; ++c) {
        bool old_waits = waiting_[size_t{index} * k_ + c] != 0;
        push(old_waits || part_is_small ? fresh : index, c);
      }
    }
    touched_.clear();
  }

  void add_work(uint32_t block) {
    waiting_.resize(blocks_.size() * k_, 0);
    for (uint32_t c = 0; c < k_; ++c) push(block, c);
  }

  void push(uint32_t block, uint32_t c) {
    uint8_t& waits = waiting_[size_t{block} * k_ + c];
    if (waits) return;
    waits = 1;
    work_.emplace_back(block, c);
  }

  void refine(uint32_t block, uint32_t c) {
    // Marking reorders states within the block being read, so collect the sources first.
    sources_.clear();
    for (uint32_t i = blocks_[block].begin; i < blocks_[block].end; ++i) {
      size_t slot = size_t{states_[i]} * k_ + c;
      sources_.insert(sources_.end(), from_.begin() + begin_[slot],
                      from_.begin() + begin_[slot + 1]);
    }
    for (uint32_t s : sources_) mark(s);
    split_touched();
  }

  const DfaTable& t_;
  uint32_t n_, k_;
  std::vector<uint32_t> begin_, from_;  // transitions by (target, class)
  std::vector<uint32_t> states_, place_, block_of_, touched_, sources_;
  std::vector<Block> blocks_;
  std::vector<std::pair<uint32_t, uint32_t>> work_;
  std::vector<uint8_t> waiting_;
};

// Merges equivalent byte classes and numbers them by their first byte.
void merge_classes(DfaTable& t) {
  std::map<std::vector<uint32_t>, uint32_t> seen;
  std::vector<uint32_t> merged(t.classes, UINT32_MAX), representative;
  for (int b = 0; b < 256; ++b) {
    uint32_t c = t.class_of[b];
    if (merged[c] != UINT32_MAX) continue;
    std::vector<uint32_t> column(t.states());
    for (uint32_t s = 0; s < t.states(); ++s) column[s] = t.next[s * t.classes + c];
    auto [it, fresh] = seen.emplace(std::move(column), static_cast<uint32_t>(seen.size()));
    if (fresh) representative.push_back(c);
    merged[c] = it->second;
  }
  auto k = static_cast<uint32_t>(representative.size());
  std::vector<uint32_t> next(size_t{t.states()} * k);
  for (uint32_t s = 0; s < t.states(); ++s) {
    for (uint32_t c = 0; c < k; ++c) next[s * k + c] = t.next[s * t.classes + representative[c]];
  }
  for (uint8_t& c : t.class_of) c = static_cast<uint8_t>(merged[c]);
  t.classes = k;
  t.next = std::move(next);
}

DfaTable quotient(const DfaTable& t, const Partition& partition) {
  DfaTable q{.class_of = t.class_of, .classes = t.classes, .next = {}, .accepting = {}};
  // Keep the dead state's block as state 0.
  uint32_t dead = partition.block_of(0);
  auto number = [&](uint32_t s) {
    uint32_t block = partition.block_of(s);
    return block == dead ? 0 : block < dead ? block + 1 : block;
  };
  q.next.resize(size_t{partition.blocks()} * t.classes);
  q.accepting.resize(partition.blocks());
  for (uint32_t s = 0; s < t.states(); ++s) {
    uint32_t to = number(s);
    q.accepting[to] = t.accepting[s];
    for (uint32_t c = 0; c < t.classes; ++c) {
      q.next[size_t{to} * t.classes + c] = number(t.next[s * t.classes + c]);
    }
  }
  q.start = number(t.start);
  return q;
}

}  // namespace

Dfa::Dfa() {
  table_.next = {0};
  table_.accepting = {0};
  only_byte_ = {kNoByte};
  class_bytes_.resize(1);
  class_bytes_[0].set();
}

Result<Dfa> Dfa::make(DfaTable table, Budget& budget) {
  CHECK(!table.accepting.empty() && !table.accepting[0]);
  const char* what = "minimizing a pattern";
  TRY(Budget::fits("the pattern (automaton transitions)", table.next.size(),
                   budget.limits().transitions_max));
  trim(table);
  if (table.start == kDead) return Dfa();
  TRY(budget.spend(what, table.next.size()));
  Partition partition(table);
  TRY(partition.run(budget));
  DfaTable small = quotient(table, partition);
  TRY(budget.spend(what, table.next.size()));
  merge_classes(small);
  TRY(budget.spend(what, table.next.size()));
  trim(small);  // numbers the states canonically
  Dfa dfa;
  dfa.table_ = std::move(small);
  const DfaTable& t = dfa.table_;
  dfa.only_byte_.assign(t.states(), kNoByte);
  std::vector<int> bytes_in(t.classes, 0), last_byte(t.classes, 0);
  dfa.class_bytes_.assign(t.classes, {});
  for (int b = 0; b < 256; ++b) {
    ++bytes_in[t.class_of[b]];
    last_byte[t.class_of[b]] = b;
    dfa.class_bytes_[t.class_of[b]].set(b);
  }
  for (uint32_t s = 1; s < t.states(); ++s) {
    int count = 0, byte = 0;
    for (uint32_t c = 0; c < t.classes; ++c) {
      if (t.next[s * t.classes + c] == kDead) continue;
      count += bytes_in[c];
      byte = last_byte[c];
    }
    dfa.only_byte_[s] = static_cast<int16_t>(count == 0 ? kNoByte : count == 1 ? byte : kManyBytes);
  }
  uint64_t h = XXH3_64bits(t.class_of.data(), t.class_of.size());
  h = XXH3_64bits_withSeed(t.next.data(), t.next.size() * sizeof(uint32_t), h);
  dfa.hash_ = XXH3_64bits_withSeed(t.accepting.data(), t.accepting.size(), h);
  return dfa;
}

Dfa Dfa::of_bytes(const std::array<bool, 256>& bytes) {
  DfaTable t;
  t.classes = 2;
  for (int b = 0; b < 256; ++b) t.class_of[b] = bytes[b] ? 1 : 0;
  t.next = {0, 0, 0, 2, 0, 0};
  t.accepting = {0, 0, 1};
  t.start = 1;
  Budget enough({.compile_s = 1e6});
  return make(std::move(t), enough).value();
}

bool Dfa::matches(std::string_view text) const {
  uint32_t s = start();
  for (char c : text) s = step(s, static_cast<uint8_t>(c));
  return accepting(s);
}

namespace {

// The product automaton. `label(x, y)` labels a pair of states; `dead(x, y)` is true if nothing can
// follow it.
template <class Label, class Dead>
Result<Dfa> product(const Dfa& a, const Dfa& b, Label label, Dead dead, Budget& budget) {
  DfaTable t;
  std::map<std::pair<uint8_t, uint8_t>, uint8_t> pair_class;
  std::vector<std::pair<uint8_t, uint8_t>> class_pair;
  for (int byte = 0; byte < 256; ++byte) {
    std::pair pair = {a.class_of(static_cast<uint8_t>(byte)),
                      b.class_of(static_cast<uint8_t>(byte))};
    auto [it, fresh] = pair_class.emplace(pair, static_cast<uint8_t>(class_pair.size()));
    if (fresh) class_pair.push_back(pair);
    t.class_of[byte] = it->second;
  }
  t.classes = static_cast<uint32_t>(class_pair.size());
  std::unordered_map<uint64_t, uint32_t> numbers;
  std::vector<std::pair<uint32_t, uint32_t>> states;
  auto number = [&](uint32_t x, uint32_t y) {
    if (dead(x, y)) x = y = Dfa::kDead;
    auto [it, fresh] = numbers.emplace(uint64_t{x} << 32 | y, static_cast<uint32_t>(states.size()));
    if (fresh) states.emplace_back(x, y);
    return it->second;
  };
  number(Dfa::kDead, Dfa::kDead);
  t.start = number(a.start(), b.start());
  for (size_t i = 0; i < states.size(); ++i) {
    auto [x, y] = states[i];
    t.accepting.push_back(i == 0 ? 0 : label(x, y));
    for (auto [ca, cb] : class_pair) {
      t.next.push_back(number(a.step_class(x, ca), b.step_class(y, cb)));
    }
    TRY(Budget::fits("a combination of patterns (states)", states.size(),
                     budget.limits().dfa_states_max));
    TRY(budget.spend("combining patterns", t.classes));
  }
  return Dfa::make(std::move(t), budget);
}

}  // namespace

Result<Dfa> combine(const Dfa& a, const Dfa& b, DfaOperation operation, Budget& budget) {
  auto label = [&](uint32_t x, uint32_t y) -> uint8_t {
    bool in_a = a.accepting(x), in_b = b.accepting(y);
    bool accepts = operation == DfaOperation::kIntersection ? in_a && in_b
                   : operation == DfaOperation::kUnion      ? in_a || in_b
                                                            : in_a && !in_b;
    return accepts ? kAccepts : 0;
  };
  auto dead = [operation](uint32_t x, uint32_t y) {
    if (operation == DfaOperation::kDifference) return x == 0;
    return operation == DfaOperation::kUnion ? x == 0 && y == 0 : x == 0 || y == 0;
  };
  return product(a, b, label, dead, budget);
}

Result<Dfa> mark_character_ends(const Dfa& dfa, const Dfa& characters, Budget& budget) {
  auto label = [&](uint32_t x, uint32_t y) {
    return static_cast<uint8_t>((dfa.accepting(x) ? kAccepts : 0) |
                                (characters.accepting(y) ? kCharacterEnd : 0));
  };
  return product(
      dfa, characters, label, [](uint32_t x, uint32_t y) { return x == 0 || y == 0; }, budget);
}

namespace {

// Incremental construction of the minimal automaton of sorted strings. States past the last
// branching point become final when the next string is known, and are then shared with equal
// earlier states.
class TextsBuilder {
 public:
  explicit TextsBuilder(Budget& budget)
      : budget_(budget), states_max_(budget.limits().dfa_states_max * 4) {}

  // Strings come in ascending order, without duplicates.
  Status add(const std::string& text) {
    size_t common = 0;
    while (common < last_.size() && common < text.size() && text[common] == last_[common]) ++common;
    TRY(settle(common));
    TRY(Budget::fits("a choice of texts (states)", text.size(), states_max_));
    path_.resize(text.size() + 1);
    for (size_t i = common; i < text.size(); ++i) path_[i + 1] = {};
    path_[text.size()].accepts = true;
    last_ = text;
    return {};
  }

  Result<Dfa> finish() {
    TRY(settle(0));
    uint32_t start = TRY(intern(path_[0]));
    DfaTable t;
    std::array<bool, 256> used{};
    for (const State& s : states_) {
      for (auto [byte, to] : s.edges) used[byte] = true;
    }
    bool all = std::find(used.begin(), used.end(), false) == used.end();
    t.classes = all ? 0 : 1;  // class 0: bytes that occur in no string
    for (int b = 0; b < 256; ++b) {
      t.class_of[b] = used[b] ? static_cast<uint8_t>(t.classes++) : uint8_t{0};
    }
    size_t transitions = (states_.size() + 1) * t.classes;
    TRY(Budget::fits("a choice of texts (automaton transitions)", transitions,
                     budget_.limits().transitions_max));
    t.next.assign(transitions, 0);
    t.accepting.push_back(0);
    for (size_t i = 0; i < states_.size(); ++i) {
      t.accepting.push_back(states_[i].accepts ? kAccepts : 0);
      for (auto [byte, to] : states_[i].edges) t.next[(i + 1) * t.classes + t.class_of[byte]] = to;
    }
    t.start = start;
    return Dfa::make(std::move(t), budget_);
  }

 private:
  struct State {
    std::vector<std::pair<uint8_t, uint32_t>> edges;  // targets are numbered from 1
    bool accepts = false;
    bool operator<(const State& o) const {
      return std::tie(accepts, edges) < std::tie(o.accepts, o.edges);
    }
  };

  Result<uint32_t> intern(const State& state) {
    // A state is compared with about twenty others.
    TRY(budget_.spend("a choice of texts", 20 + state.edges.size()));
    auto [it, fresh] = index_.emplace(state, static_cast<uint32_t>(states_.size() + 1));
    if (fresh) states_.push_back(state);
    TRY(Budget::fits("a choice of texts (states)", states_.size(), states_max_));
    return it->second;
  }

  Status settle(size_t common) {
    for (size_t i = last_.size(); i > common; --i) {
      uint32_t to = TRY(intern(path_[i]));
      path_[i - 1].edges.emplace_back(static_cast<uint8_t>(last_[i - 1]), to);
    }
    return {};
  }

  Budget& budget_;
  const size_t states_max_;
  std::vector<State> path_ = {{}};
  std::string last_;
  std::vector<State> states_;
  std::map<State, uint32_t> index_;
};

}  // namespace

Result<Dfa> dfa_of_texts(std::vector<std::string> texts, Budget& budget) {
  std::sort(texts.begin(), texts.end());
  texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
  if (texts.empty()) return Dfa();
  TextsBuilder builder(budget);
  for (const std::string& text : texts) TRY(builder.add(text));
  return builder.finish();
}

std::string shortest_text(const Dfa& dfa) {
  CHECK(!dfa.empty());
  std::vector<std::pair<uint32_t, uint8_t>> parent(dfa.states(), {0, 0});
  std::vector<bool> seen(dfa.states(), false);
  std::deque<uint32_t> queue = {dfa.start()};
  seen[dfa.start()] = seen[0] = true;
  while (!dfa.accepting(queue.front())) {
    uint32_t s = queue.front();
    queue.pop_front();
    for (int b = 0; b < 256; ++b) {
      uint32_t to = dfa.step(s, static_cast<uint8_t>(b));
      if (seen[to]) continue;
      seen[to] = true;
      parent[to] = {s, static_cast<uint8_t>(b)};
      queue.push_back(to);
    }
  }
  std::string text;
  for (uint32_t s = queue.front(); s != dfa.start(); s = parent[s].first) {
    text.push_back(static_cast<char>(parent[s].second));
  }
  std::reverse(text.begin(), text.end());
  return text;
}

}  // namespace banyan
