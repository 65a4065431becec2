#include "engine/drafters/suffix.h"

#include <algorithm>
#include <array>
#include <list>
#include <utility>

#include "base/signed.h"
#include "engine/drafters/own_text.h"
#include "engine/sequence.h"

namespace banyan {
namespace {

constexpr int64_t kHalfTokens = int64_t{1} << 15;  // of recent text per namespace
constexpr size_t kNamespacesMax = 16;
// A continuation stops when its estimated probability falls below this.
constexpr float kOddsMin = 0.1f;
// How many match lengths are tried, longest first.
constexpr int kLengthsMax = 4;

// Prompts and outputs of ended sequences of one namespace.
class RecentTexts {
 public:
  explicit RecentTexts(PrefixNamespace name) : name_(std::move(name)) {}

  const PrefixNamespace& name() const { return name_; }
  const TextIndex& newer() const { return newer_; }
  const TextIndex& older() const { return older_; }

  void add(std::span<const TokenId> tokens) {
    tokens = tokens.last(std::min<size_t>(tokens.size(), kHalfTokens - 1));
    if (newer_.size() + std::ssize(tokens) >= kHalfTokens) {
      older_ = std::move(newer_);
      newer_ = TextIndex(kHalfTokens);
    }
    newer_.append(tokens);
    TokenId separator = TextIndex::kSeparator;
    newer_.append({&separator, 1});
  }

 private:
  PrefixNamespace name_;
  TextIndex newer_{kHalfTokens}, older_{0};
};

// A match that may be continued.
struct Candidate {
  const TextIndex* text = nullptr;
  bool own = false;
  TextIndex::Match match;
  bool agrees = false;  // matches the continuation so far
  TokenId next = 0;     // its token after that
};

class Candidates {
 public:
  void add(const TextIndex& text, bool own, std::span<const TextIndex::Match> matches) {
    for (const TextIndex::Match& match : matches) all_[count_++] = {&text, own, match};
  }
  // Longest first. Ties keep the order of insertion, newest first.
  void sort() {
    std::ranges::stable_sort(used(), [](const Candidate& a, const Candidate& b) {
      return a.match.length > b.match.length;
    });
  }
  std::span<Candidate> used() { return std::span(all_).first(count_); }

 private:
  std::array<Candidate, 3 * TextIndex::kMatchesMax> all_;
  size_t count_ = 0;
};

TokenId token_of(const Candidate& c, std::span<const TokenId> forced,
                 std::span<const TokenId> drafted, int64_t ahead) {
  if (c.own) return own_token(*c.text, forced, drafted, c.match.end, ahead);
  int64_t i = c.match.end + ahead;
  return i < c.text->size() ? (*c.text)[i] : TextIndex::kSeparator;
}

// The most frequent next token among the candidates that still agree (ties: the first candidate's),
// and its share of the votes. The separator if there is none.
std::pair<TokenId, float> vote(std::span<const Candidate> candidates) {
  TokenId best = TextIndex::kSeparator;
  int64_t most = 0, voters = 0;
  for (const Candidate& c : candidates) {
    if (!c.agrees) continue;
    ++voters;
    if (c.next == TextIndex::kSeparator || c.next == best) continue;
    int64_t votes = std::ranges::count_if(
        candidates, [&](const Candidate& other) { return other.agrees && other.next == c.next; });
    if (votes <= most) continue;
    most = votes;
    best = c.next;
  }
  return {best, voters > 0 ? static_cast<float>(most) / static_cast<float>(voters) : 0};
}

// A continuation, with the share of the votes for each token.
struct Continuation {
  std::vector<TokenId> tokens;
  std::vector<float> shares;
  float promised = 0;  // expected number of accepted tokens, by votes alone
};

// Continues the text while candidates agree.
void extend(std::span<Candidate> candidates, int64_t count, const DraftTask& task,
            Continuation& to) {
  for (Candidate& c : candidates) c.agrees = true;
  to.tokens.clear();
  to.shares.clear();
  to.promised = 0;
  float odds = 1;
  for (int64_t j = 0; j < count; ++j) {
    for (Candidate& c : candidates) {
      if (c.agrees) c.next = token_of(c, task.forced, to.tokens, j);
    }
    auto [token, share] = vote(candidates);
    odds *= share;
    if (token == TextIndex::kSeparator || odds < kOddsMin) break;
    for (Candidate& c : candidates) c.agrees = c.agrees && c.next == token;
    to.tokens.push_back(token);
    to.shares.push_back(share);
    to.promised += odds;
  }
}

class SuffixDrafter final : public Drafter {
 public:
  void propose(std::span<DraftTask* const> tasks) override {
    for (DraftTask* task : tasks) propose(*task);
  }

  void end(const Sequence& s) override {
    if (s.cached_tokens < 0) return;  // it never ran
    auto known = as_size(std::min(s.cached_tokens, s.length()));
    texts_of(s.name_space, true)->add(std::span(s.tokens).subspan(known));
  }

  void forget() override { texts_.clear(); }

 private:
  RecentTexts* texts_of(const PrefixNamespace& name, bool make) {
    auto found = std::ranges::find(texts_, name, &RecentTexts::name);
    if (found == texts_.end()) {
      if (!make) return nullptr;
      if (texts_.size() == kNamespacesMax) texts_.pop_back();
      texts_.emplace_front(name);
    } else if (make) {
      texts_.splice(texts_.begin(), texts_, found);
    } else {
      return &*found;
    }
    return &texts_.front();
  }

  Candidates candidates_for(const DraftTask& task) {
    Candidates candidates;
    DraftContext context(task);
    std::array<TextIndex::Match, TextIndex::kMatchesMax> found;
    const TextIndex& own = own_text(*task.sequence);
    int64_t self = task.forced.empty() ? own.size() : -1;
    candidates.add(own, true, own.find(context.tokens(), self, found));
    if (const RecentTexts* texts = texts_of(task.sequence->name_space, false)) {
      for (const TextIndex* text : {&texts->newer(), &texts->older()}) {
        candidates.add(*text, false, text->find(context.tokens(), text->size(), found));
      }
    }
    candidates.sort();
    return candidates;
  }

  // Longer matches are more reliable, shorter ones have more votes; take the highest expected gain.
  void propose(DraftTask& task) {
    Candidates candidates = candidates_for(task);
    std::span<Candidate> all = candidates.used();
    best_.promised = 0;
    float trusted = 0;
    size_t voters = 0;
    for (int i = 0; i < kLengthsMax && voters < all.size(); ++i) {
      int64_t length = all[voters].match.length;
      while (voters < all.size() && all[voters].match.length == length) ++voters;
      bool whole = length == TextIndex::kContextMax;
      int64_t count = whole ? task.tokens_max : std::min(task.tokens_max, length + 1);
      extend(all.first(voters), count, task, tried_);
      if (tried_.promised <= best_.promised) continue;
      std::swap(best_, tried_);
      trusted = match_confidence(length);
    }
    if (best_.promised == 0) return;
    for (size_t j = 0; j < best_.tokens.size(); ++j) {
      if (!task.add(best_.tokens[j], trusted * best_.shares[j])) return;
    }
  }

  std::list<RecentTexts> texts_;  // most recently used first
  Continuation best_, tried_;     // reused
};

}  // namespace

std::unique_ptr<Drafter> make_suffix_drafter() {
  return std::make_unique<SuffixDrafter>();
}

}  // namespace banyan
