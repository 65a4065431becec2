#include "grammar/run/parser.h"

#include <xxhash.h>

#include <algorithm>
#include <functional>

#include "base/check.h"

namespace banyan {

Parser::Parser(std::shared_ptr<const Automaton> automaton, uint32_t horizon)
    : automaton_(std::move(automaton)),
      horizon_(horizon),
      first_stack_(automaton_->nodes(), {0, 0}),
      entry_(automaton_->routines()),
      entered_(automaton_->routines(), 0),
      seen_nodes_(automaton_->nodes(), 0) {}

ParseState Parser::start() {
  ParseState state;
  begin_closure();
  enter(automaton_->root(), Stacks::kBottomStack);
  complete_ = automaton_->routine(automaton_->root()).nullable;
  run_entries();
  finish(state);
  return state;
}

bool Parser::advance(Configuration& c, uint8_t byte, bool& ends, bool& stays) const {
  const Terminal& t = automaton_->terminal_of(automaton_->node(c.node));
  if (!t.dfa) {
    if (static_cast<uint8_t>(t.text[c.place]) != byte) return false;
    ends = ++c.place == t.text.size();
    stays = !ends;
    return true;
  }
  c.place = t.dfa->step(c.place, byte);
  if (c.place == Dfa::kDead) return false;
  ends = t.dfa->accepting(c.place);
  stays = t.dfa->only_byte(c.place) != Dfa::kNoByte;
  if (!t.counts_characters) return true;
  if (t.dfa->character_end(c.place)) ++c.count;
  if (!t.within_bounds(c.place, c.count)) return false;
  ends = ends && c.count >= t.min;
  // One more character must fit; the rest of a character that has begun is already counted in
  // `shortest`.
  stays = stays && (c.count < t.max || !t.dfa->character_end(c.place));
  if (t.max == Rules::kUnbounded) c.count = std::min(c.count, t.min);
  return true;
}

void Parser::step(const ParseState& from, uint8_t byte, ParseState& to) {
  to.configurations.clear();
  to.complete = false;
  bool closing = false;
  made_.clear();
  complete_ = false;
  for (const Configuration& c : from.configurations) {
    Configuration moved = c;
    bool ends = false, stays = false;
    if (!advance(moved, byte, ends, stays)) continue;
    if (stays) made_.push_back(moved);
    if (!ends) continue;
    if (!closing) {
      closing = true;
      ++epoch_;
      work_.clear();
      more_stacks_.clear();
      pending_.clear();
      entries_.clear();
    }
    complete_terminal(automaton_->node(c.node).next, c.stack);
  }
  if (closing) {
    run_pops();
    run_entries();
  }
  finish(to);
}

void Parser::begin_closure() {
  ++epoch_;
  made_.clear();
  work_.clear();
  more_stacks_.clear();
  pending_.clear();
  entries_.clear();
  complete_ = false;
}

void Parser::complete_terminal(uint32_t next, StackId stack) {
  auto& [epoch, first] = first_stack_[next];
  if (epoch != epoch_) {
    epoch = epoch_;
    first = stack;
  } else {
    if (first == stack) return;
    for (const Item& item : more_stacks_) {
      if (item.node == next && item.stack == stack) return;
    }
    more_stacks_.push_back({next, stack});
  }
  work_.push_back({next, stack});
}

// Follows completed terminals, in their own routines and in those that called them. Frames pushed
// here are never popped here, since nullable routines have a bypass.
void Parser::run_pops() {
  while (!work_.empty()) {
    auto [index, stack] = work_.back();
    work_.pop_back();
    const AutomatonNode& n = automaton_->node(index);
    switch (n.kind) {
      case NodeKind::kTerminal:
        emit(index, stack);
        break;
      case NodeKind::kSplit:
        complete_terminal(n.next, stack);
        complete_terminal(n.index, stack);
        break;
      case NodeKind::kCall:
        enter_node(n, index, stack);
        if (automaton_->routine(n.index).nullable) complete_terminal(n.next, stack);
        break;
      case NodeKind::kLoop:
        enter_node(n, index, stack);
        if (automaton_->skippable(automaton_->loop(n.index))) complete_terminal(n.next, stack);
        break;
      case NodeKind::kReturn:
        pop(stack);
        break;
    }
  }
}

void Parser::pop(StackId stack) {
  for (size_t i = 0; i < stacks_.frames(stack).size(); ++i) {
    Frame frame = stacks_.frames(stack)[i];
    if (frame.node == Frame::kBottom) {
      complete_ = true;
      continue;
    }
    const AutomatonNode& n = automaton_->node(frame.node);
    if (n.kind == NodeKind::kCall) {
      complete_terminal(n.next, frame.below);
      continue;
    }
    const Loop& loop = automaton_->loop(n.index);
    ++frame.count;
    if (frame.count < loop.max) {
      Frame again = frame;
      if (loop.max == Rules::kUnbounded) again.count = std::min(frame.count, loop.min);
      again.hashed_count = clamp(again.count, loop.min, loop.max);
      enter(loop.routine, stacks_.push(again));
    }
    bool enough = frame.count >= loop.min || automaton_->routine(loop.routine).nullable;
    if (enough) complete_terminal(n.next, frame.below);
  }
}

void Parser::enter_node(const AutomatonNode& n, uint32_t index, StackId stack) {
  bool loop = n.kind == NodeKind::kLoop;
  uint32_t routine = loop ? automaton_->loop(n.index).routine : n.index;
  if (!loop && n.next == Automaton::kReturnNode) return enter(routine, stack);
  if (!stacks_.may_push(stack)) return;
  uint32_t hashed = 0;
  if (loop) {
    const Loop& l = automaton_->loop(n.index);
    hashed = clamp(0, l.min, l.max);
  }
  enter(routine, stacks_.push({.node = index, .count = 0, .hashed_count = hashed, .below = stack}));
}

void Parser::enter(uint32_t routine, StackId stack) {
  constexpr uint32_t kLast = UINT32_MAX;
  bool again = entered_[routine] == epoch_;
  entries_.emplace_back(stack, again ? entry_[routine] : kLast);
  entry_[routine] = static_cast<uint32_t>(entries_.size() - 1);
  if (again) return;
  entered_[routine] = epoch_;
  pending_.emplace_back(automaton_->routine(routine).rank, routine);
  std::push_heap(pending_.begin(), pending_.end(), std::greater<>());
}

// The union of all stacks that entered the routine. Merges halves, not one stack at a time: with
// thousands of callers that would be quadratic in memory and time.
StackId Parser::entry_stack(uint32_t routine) {
  uniting_.clear();
  for (uint32_t i = entry_[routine]; i != UINT32_MAX; i = entries_[i].second) {
    uniting_.push_back(entries_[i].first);
  }
  while (uniting_.size() > 1) {
    size_t kept = 0;
    for (size_t i = 0; i + 1 < uniting_.size(); i += 2) {
      uniting_[kept++] = stacks_.unite(uniting_[i], uniting_[i + 1]);
    }
    if (uniting_.size() % 2 == 1) uniting_[kept++] = uniting_.back();
    uniting_.resize(kept);
  }
  return uniting_[0];
}

// Expands in order of rank: all callers of a routine are expanded before it.
void Parser::run_entries() {
  while (!pending_.empty()) {
    std::pop_heap(pending_.begin(), pending_.end(), std::greater<>());
    uint32_t routine = pending_.back().second;
    pending_.pop_back();
    expand(automaton_->routine(routine).entry, entry_stack(routine));
  }
}

void Parser::expand(uint32_t entry, StackId stack) {
  ++expand_epoch_;
  node_stack_.clear();
  auto push = [this](uint32_t node) {
    if (seen_nodes_[node] == expand_epoch_) return;
    seen_nodes_[node] = expand_epoch_;
    node_stack_.push_back(node);
  };
  push(entry);
  while (!node_stack_.empty()) {
    uint32_t index = node_stack_.back();
    node_stack_.pop_back();
    const AutomatonNode& n = automaton_->node(index);
    switch (n.kind) {
      case NodeKind::kTerminal:
        emit(index, stack);
        break;
      case NodeKind::kSplit:
        push(n.next);
        push(n.index);
        break;
      case NodeKind::kCall:
        enter_node(n, index, stack);
        if (automaton_->routine(n.index).nullable) push(n.next);
        break;
      case NodeKind::kLoop:
        enter_node(n, index, stack);
        if (automaton_->skippable(automaton_->loop(n.index))) push(n.next);
        break;
      case NodeKind::kReturn:
        break;  // the routine is nullable; its callers handle that
    }
  }
}

void Parser::emit(uint32_t node, StackId stack) {
  const Terminal& t = automaton_->terminal_of(automaton_->node(node));
  made_.push_back({node, t.dfa ? t.dfa->start() : 0, 0, stack});
}

void Parser::unite_alike(std::vector<Configuration>& configurations) {
  if (configurations.size() <= 1) return;
  auto place = [](const Configuration& c) { return std::pair(c.key(), c.count); };
  auto before = [&](const Configuration& a, const Configuration& b) {
    return std::pair(place(a), a.stack) < std::pair(place(b), b.stack);
  };
  // A chain of optional parts is already sorted.
  if (!std::is_sorted(configurations.begin(), configurations.end(), before)) {
    std::sort(configurations.begin(), configurations.end(), before);
  }
  size_t kept = 0;
  for (size_t i = 1; i < configurations.size(); ++i) {
    if (place(configurations[i]) == place(configurations[kept])) {
      configurations[kept].stack =
          stacks_.unite(configurations[kept].stack, configurations[i].stack);
    } else {
      configurations[++kept] = configurations[i];
    }
  }
  configurations.resize(std::min(kept + 1, kConfigurationsMax));
}

void Parser::finish(ParseState& to) {
  to.complete = complete_;
  unite_alike(made_);
  to.configurations.assign(made_.begin(), made_.end());
}

ParseState Parser::after(uint32_t next, StackId stack) {
  ParseState state;
  begin_closure();
  complete_terminal(next, stack);
  run_pops();
  run_entries();
  finish(state);
  return state;
}

bool Parser::run(ParseState& state, std::string_view bytes) {
  ParseState next;
  for (char c : bytes) {
    step(state, static_cast<uint8_t>(c), next);
    std::swap(state, next);
    if (state.dead()) return false;
  }
  return true;
}

void Parser::next_bytes(const ParseState& state, std::bitset<256>& bytes) const {
  bytes.reset();
  for (const Configuration& c : state.configurations) add_next_bytes(c, bytes);
}

void Parser::add_next_bytes(const Configuration& c, std::bitset<256>& bytes) const {
  const Terminal& t = automaton_->terminal_of(automaton_->node(c.node));
  if (!t.dfa) {
    bytes.set(static_cast<uint8_t>(t.text[c.place]));
    return;
  }
  for (uint32_t i = 0; i < t.dfa->classes(); ++i) {
    if (t.dfa->step_class(c.place, i) != Dfa::kDead) bytes |= t.dfa->bytes_of_class(i);
  }
}

int Parser::only_byte(const ParseState& state) const {
  if (state.complete) return Dfa::kManyBytes;
  int only = Dfa::kNoByte;
  for (const Configuration& c : state.configurations) {
    const Terminal& t = automaton_->terminal_of(automaton_->node(c.node));
    int byte = t.dfa ? t.dfa->only_byte(c.place) : static_cast<uint8_t>(t.text[c.place]);
    if (byte == Dfa::kManyBytes || (only != Dfa::kNoByte && byte != only)) return Dfa::kManyBytes;
    only = byte;
  }
  return only;
}

void Parser::forced(ParseState& state, std::string& bytes, size_t bytes_max) {
  ParseState next;
  while (bytes.size() < bytes_max) {
    int byte = only_byte(state);
    if (byte < 0) return;
    step(state, static_cast<uint8_t>(byte), next);
    if (next.dead()) return;
    bytes.push_back(static_cast<char>(byte));
    std::swap(state, next);
  }
}

// The smallest count that behaves like `count` with respect to the bounds for the next `horizon_`
// steps.
uint32_t Parser::clamp(uint32_t count, uint32_t min, uint32_t max) const {
  if (uint64_t{count} + horizon_ >= max || horizon_ == 0) return count;
  if (uint64_t{count} + horizon_ < min) return 0;
  return std::min(count, min);
}

uint64_t Parser::hash(const ParseState& state) const {
  uint64_t hash = state.complete ? 1 : 0;
  for (const Configuration& c : state.configurations) {
    const Terminal& t = automaton_->terminal_of(automaton_->node(c.node));
    uint32_t count = t.counts_characters ? clamp(c.count, t.min, t.max) : 0;
    uint64_t words[3] = {c.key(), count, stacks_.hash(c.stack)};
    hash = XXH3_64bits_withSeed(words, sizeof words, hash);
  }
  return hash;
}

}  // namespace banyan
