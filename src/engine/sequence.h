// One request in flight. Owned by the Scheduler; only the engine's thread may touch it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "banyan/engine.h"
#include "banyan/request.h"
#include "cache/radix_tree.h"
#include "engine/adapters/loaded_adapter.h"
#include "engine/drafters/acceptance.h"
#include "engine/drafters/text_index.h"
#include "engine/draws/dry.h"
#include "engine/draws/token_counts.h"

namespace banyan {

struct Sequence {
  enum class Place : uint8_t {
    kWaiting,    // in the queue
    kFollowing,  // waits for a running sequence to compute its prefix
    kRestoring,  // waits for its prefix to be loaded: engine/tiers
    kRunning,
  };

  SequenceId id = 0;
  GenerateRequest request;
  TokenSink sink;
  PrefixNamespace name_space;  // which prefixes it may share
  AdapterUse adapter;          // null: the model as it is
  Place place = Place::kWaiting;
  uint64_t arrival = 0;     // order of arrival, kept when it is retracted
  int64_t arrived_ns = 0;   // by the engine's clock
  int64_t queues_ns = 0;    // when it arrived, or the program that it belongs to
  int64_t deadline_ns = 0;  // 0: none

  std::vector<TokenId> tokens;  // the prompt, then what was generated
  int64_t prompt_tokens = 0;
  int64_t tokens_max = 0;  // prompt and output together
  // Output that is drawn whatever the logits are: EngineAssembly::submit_recorded().
  std::vector<TokenId> recorded;
  // The next prompt position whose log-probability is to be reported; past the prompt: none.
  int64_t prompt_logprobs_next = INT64_MAX;
  int64_t progress_tokens = 0;  // of the prompt, reported as computed
  std::vector<double> pooled;   // sum of the hidden states of positions that it pools, so far
  TokenCounts counts;           // filled if the request has penalties
  DryPenalties dry;             // prepared if it has DRY penalties
  // In the step being read: how many tokens it added, and whether the last one ended the text.
  int64_t drawn = 0;
  FinishReason finish = FinishReason::kNone;
  bool cancelled = false;

  // What it holds; changed only by engine/schedule/holdings.h.
  RadixNode* root = nullptr;
  Lease lease;  // the part of its pages that is in the tree
  struct Held {
    std::vector<int32_t> units;  // of positions [0, units * page size), or one slot
    int64_t first = 0;           // units before this index are -1: out of reach
  };
  PerClass<Held> held_units;
  int64_t computed = 0;  // positions whose state exists, ...
  int64_t logged = 0;    // ... the last ones of them only in the draft log, as far as slots go
  std::vector<int64_t> wanted;       // positions to take a snapshot at
  int64_t last_snapshot = 0;         // position of the last one after the prompt; 0: none
  std::vector<PageHash> computing;   // pages of its prompt that it will publish, ...
  int64_t computing_first_page = 0;  // ... starting with this page, ...
  size_t withdrawn = 0;              // ... and how many of them it has published

  // Another draft for the same sequence, which is as the main one, the trunk, up to some token.
  struct Branch {
    std::vector<TokenId> tokens;     // those that it shares with the trunk, then its own
    int64_t shared = 0;              // how many those are
    int source = 0;                  // of its own, ...
    std::vector<float> confidences;  // ... and their confidences
    // Pages of its own while it is in a step: from the page `first_page` of the sequence on.
    PerClass<std::vector<int32_t>> units;
    int64_t first_page = 0;
  };

  // Draft tokens after `tokens`: engine/drafters/speculate.h.
  struct Draft {
    std::vector<TokenId> tokens;
    int64_t forced = 0;              // the first ones are forced by a constraint, ...
    int source = 0;                  // ... the others come from this source
    std::vector<float> confidences;  // of each token
    std::vector<Branch> branches;    // the first `branch_count` are in use
    int branch_count = 0;
    int path = 0;           // which draft the step being read follows: 0: the trunk, 1: branches[0]
    int64_t reachable = 0;  // how many tokens of the trunk can be drawn in the step being built
    // Acceptance of each source: the constraint first, then the engine's drafters.
    std::array<OwnAcceptance, EngineStats::kDraftersMax> sources;
    double saved_s = 0;               // time that its drafts have saved, for draft_control.h
    int64_t published = -1;           // how far drafters/suffix.h knows its pages; -1: not at all
    std::unique_ptr<TextIndex> text;  // index of its own tokens, for drafters/own_text.h, ...
    int64_t indexed = 0;              // ... which covers this many
    int64_t drafts = 0, proposed = 0, accepted_end = 0;  // for TokenEvent
  };
  Draft draft;

  // The tokens of the trunk or of a branch.
  std::span<const TokenId> draft_path(int path) const {
    return path == 0 ? std::span(draft.tokens)
                     : std::span(draft.branches[static_cast<size_t>(path - 1)].tokens);
  }

  // Used while it waits.
  PrefixWaiter waiter;
  int64_t score = 0;
  // Sequences that wait for this one, each until it has computed a given number of positions.
  struct Follower {
    Sequence* sequence = nullptr;
    int64_t computed = 0;
  };
  std::vector<Follower> followers;
  Sequence* leader = nullptr;
  bool followed = false;  // it has followed before, letting others pass

  // State of engine/tiers: the transfer that it waits for, or benefits from.
  struct Restore {
    uint64_t transfer = 0;       // 0: none
    bool aside = false;          // it has left the queue for that
    bool settled = false;        // nothing more is loaded for it, until it is retracted
    int64_t shared = 0;          // the transfer loads its prompt up to here
    int64_t begin = 0, end = 0;  // range of what was loaded
    Lease lease = {};            // of it, until the sequence is admitted
    // Loaded tokens by layer of the store.
    std::array<int64_t, CacheStorageStats::kLayersMax> layers = {};
  };
  Restore restore;

  int64_t cached_tokens = -1;    // found at its first admission; -1: not admitted yet
  int64_t restored_tokens = 0;   // of them, loaded from a store
  int64_t prefilled_tokens = 0;  // not of them: computed for it by another engine
  int64_t admission = 0;         // number of its admission among all
  double queued_s = 0;

  Held& held(int unit_class) { return held_units[static_cast<size_t>(unit_class)]; }
  const Held& held(int unit_class) const { return held_units[static_cast<size_t>(unit_class)]; }
  // Number of pages that its units cover.
  int64_t pages() const { return std::ssize(held(kPathClass).units); }
  int64_t length() const { return static_cast<int64_t>(tokens.size()); }
  // Tokens that are known but not computed: more than one while the prompt is being read.
  int64_t pending() const { return length() - computed; }
  // Whether it runs in every step.
  bool decodes() const { return pending() == 1; }

  // The token that is drawn at `position` in any case; -1: the model decides.
  TokenId recorded_at(int64_t position) const {
    auto i = static_cast<size_t>(position - prompt_tokens);
    return i < recorded.size() ? recorded[i] : -1;
  }

  // Whether the logits of `position` yield a requested log-probability of a prompt token that is
  // not reported yet.
  bool scores_prompt_at(int64_t position) const {
    return position + 1 >= prompt_logprobs_next && position + 1 < prompt_tokens;
  }

  // Whether the hidden state of `position` becomes a part of its embedding.
  bool pools_at(int64_t position) const {
    switch (request.options.pooling) {
      case Pooling::kNone:
        return false;
      case Pooling::kLast:
        return position == prompt_tokens - 1;
      case Pooling::kMean:
        return true;
    }
    return false;
  }

  // The tokens whose states may come from the cache: never the last, whose logits are needed, nor
  // one whose logits yield a requested log-probability or whose hidden state is pooled.
  std::span<const TokenId> reusable(bool prompt_only) const {
    if (request.options.pooling == Pooling::kMean) return {};
    int64_t end = length() - 1;
    if (prompt_logprobs_next < prompt_tokens) {
      end = std::min(end, std::max<int64_t>(prompt_logprobs_next - 1, 0));
    }
    if (prompt_only) end = std::min(end, prompt_tokens);
    return std::span(tokens).first(static_cast<size_t>(end));
  }
};

}  // namespace banyan
