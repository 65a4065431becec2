#include "engine/drafters/suffix.h"

#include <algorithm>
#include <array>
#include <list>
#include <utility>

#include "base/signed.h"
#include "cache/tree_text.h"
#include "engine/drafters/own_text.h"
#include "engine/schedule/scheduler.h"
#include "engine/sequence.h"

namespace banyan {
namespace {

constexpr size_t kNamespacesMax = 16;
// A continuation stops when its estimated probability falls below this.
constexpr float kOddsMin = 0.1f;
// How many match lengths are tried, longest first.
constexpr int kLengthsMax = 4;

// What the prefix cache has of one namespace.
struct SharedText {
  explicit SharedText(PrefixNamespace its_name) : name(std::move(its_name)) {}
  PrefixNamespace name;
  TreeText text;
};

// A match that may be continued: in the sequence's own text, or else in the tree.
struct Candidate {
  const TextIndex* own = nullptr;
  int64_t end = 0;  // of the match in its own text
  TreePlace place;
  int64_t length = 0;
  bool agrees = false;  // matches the continuation so far
  TreePlace ahead;      // after that, ...
  TokenId next = 0;     // ... and its next token
};

class Candidates {
 public:
  void add(const TextIndex& own, std::span<const TextIndex::Match> matches) {
    for (const TextIndex::Match& match : matches) {
      all_[count_++] = {.own = &own, .end = match.end, .length = match.length};
    }
  }
  void add(std::span<const TreePlace> places, std::span<const TokenId> context) {
    for (const TreePlace& place : places) {
      int64_t length = place.common_length(context, TextIndex::kContextMax);
      if (length < TreeText::kMatchMin) continue;  // tokens of the same hash
      all_[count_++] = {.place = place, .length = length};
    }
  }
  // Longest first. Ties keep the order of insertion.
  void sort() {
    std::ranges::stable_sort(
        used(), [](const Candidate& a, const Candidate& b) { return a.length > b.length; });
  }
  std::span<Candidate> used() { return std::span(all_).first(count_); }

 private:
  std::array<Candidate, TextIndex::kMatchesMax + TreeText::kPlacesMax> all_;
  size_t count_ = 0;
};

// Called for each token ahead in turn.
TokenId token_of(Candidate& c, const DraftTask& task, std::span<const TokenId> drafted) {
  if (c.own == nullptr) return c.ahead.next();
  return own_token(*c.own, task.forced, drafted, c.end, std::ssize(drafted));
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

// Continues the text while candidates agree. Those whose next token is one of `others` do not.
void extend(std::span<Candidate> candidates, int64_t count, const DraftTask& task,
            std::span<const TokenId> others, Continuation& to) {
  for (Candidate& c : candidates) {
    c.ahead = c.place;
    TokenId next = others.empty() ? 0 : token_of(c, task, {});
    c.agrees = std::ranges::find(others, next) == others.end();
    c.ahead = c.place;
  }
  to.tokens.clear();
  to.shares.clear();
  to.promised = 0;
  float odds = 1;
  for (int64_t j = 0; j < count; ++j) {
    for (Candidate& c : candidates) {
      if (c.agrees) c.next = token_of(c, task, to.tokens);
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

  void observe(const StepPlan& plan, bool) override {
    for (const PlannedSpan& span : plan.spans) {
      if (span.sequence == nullptr) continue;
      span.sequence->draft.published = add_published(*span.sequence);
    }
  }

  void end(const Sequence& s) override { add_published(s); }

  void forget() override { texts_.clear(); }

 private:
  // Adds the pages that the sequence has published since the last call, and returns where they end.
  // Those before its first step are other sequences', which have added them, or were loaded.
  int64_t add_published(const Sequence& s) {
    int64_t first = s.draft.published;
    if (first < 0) first = std::max<int64_t>(s.cached_tokens - s.restored_tokens, 0);
    if (s.lease.end() <= first) return first;
    text_of(s.name_space, true)->text.add(s.lease, s.tokens, first);
    return s.lease.end();
  }

  SharedText* text_of(const PrefixNamespace& name, bool make) {
    auto found = std::ranges::find(texts_, name, &SharedText::name);
    if (found != texts_.end()) {
      texts_.splice(texts_.begin(), texts_, found);
    } else if (make) {
      if (texts_.size() == kNamespacesMax) texts_.pop_back();
      texts_.emplace_front(name);
    } else {
      return nullptr;
    }
    return &texts_.front();
  }

  Candidates candidates_for(const DraftTask& task) {
    Candidates candidates;
    DraftContext context(task);
    std::array<TextIndex::Match, TextIndex::kMatchesMax> found;
    const TextIndex& own = own_text(*task.sequence);
    int64_t self = task.forced.empty() ? own.size() : -1;
    candidates.add(own, own.find(context.tokens(), self, found));
    if (const SharedText* shared = text_of(task.sequence->name_space, false)) {
      std::array<TreePlace, TreeText::kPlacesMax> places;
      candidates.add(shared->text.find(context.tokens(), places), context.tokens());
    }
    candidates.sort();
    return candidates;
  }

  // Longer matches are more reliable, shorter ones have more votes; take the highest expected gain.
  void propose(DraftTask& task) {
    Candidates candidates = candidates_for(task);
    begun_.clear();
    float trusted = choose(candidates.used(), task);
    if (best_.promised == 0) return;
    begun_.push_back(best_.tokens.front());
    for (size_t j = 0; j < best_.tokens.size(); ++j) {
      if (!task.add(best_.tokens[j], trusted * best_.shares[j])) break;
    }
    while (task.branch_count < task.branches_max) {
      trusted = choose(candidates.used(), task);
      if (best_.promised == 0) return;
      begun_.push_back(best_.tokens.front());
      DraftTask::Branch& branch = *task.add_branch(0);
      branch.tokens = best_.tokens;
      for (float share : best_.shares) branch.confidences.push_back(trusted * share);
    }
  }

  // Sets best_ to the best continuation that does not begin with a token of begun_, and returns how
  // far its match is trusted.
  float choose(std::span<Candidate> all, const DraftTask& task) {
    best_.promised = 0;
    float trusted = 0;
    size_t voters = 0;
    for (int i = 0; i < kLengthsMax && voters < all.size(); ++i) {
      int64_t length = all[voters].length;
      while (voters < all.size() && all[voters].length == length) ++voters;
      bool whole = length == TextIndex::kContextMax;
      int64_t count = whole ? task.tokens_max : std::min(task.tokens_max, length + 1);
      extend(all.first(voters), count, task, begun_, tried_);
      if (tried_.promised <= best_.promised) continue;
      std::swap(best_, tried_);
      trusted = match_confidence(length);
    }
    return trusted;
  }

  std::list<SharedText> texts_;  // most recently used first
  Continuation best_, tried_;    // reused
  std::vector<TokenId> begun_;   // the first tokens of what is proposed
};

}  // namespace

std::unique_ptr<Drafter> make_suffix_drafter() {
  return std::make_unique<SuffixDrafter>();
}

}  // namespace banyan
