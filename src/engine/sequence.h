// One request in flight. Owned by the Scheduler; touched by the engine's thread alone.
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
  Place place = Place::kWaiting;
  uint64_t arrival = 0;     // order of arrival, kept when it is retracted
  int64_t arrived_ns = 0;   // by the engine's clock
  int64_t queues_ns = 0;    // when it, or the program that it belongs to, came
  int64_t deadline_ns = 0;  // 0: none

  std::vector<TokenId> tokens;  // the prompt, then what was generated
  int64_t prompt_tokens = 0;
  int64_t tokens_max = 0;  // prompt and output together
  // The next prompt position whose log-probability is to be reported; beyond the prompt: none.
  int64_t prompt_logprobs_next = INT64_MAX;
  TokenCounts counts;  // filled when the request has penalties
  DryPenalties dry;    // ready when it has those
  // Of the step that is being read: tokens that it added, and whether the last one ended the text.
  int64_t drawn = 0;
  FinishReason finish = FinishReason::kNone;
  bool cancelled = false;

  // What it holds: engine/schedule/holdings.h.
  RadixNode* root = nullptr;
  Lease lease;  // the beginning of its pages that is in the tree
  struct Held {
    std::vector<int32_t> units;  // of positions [0, units * page size), or one slot
    int64_t first = 0;           // units before this index are -1: they are out of reach
  };
  PerClass<Held> held_units;
  int64_t computed = 0;              // positions whose state is there, ...
  int64_t logged = 0;                // ... of the last so many, what slots lack is in the draft log
  std::vector<int64_t> wanted;       // positions to leave a snapshot at
  int64_t last_snapshot = 0;         // after the prompt; 0: none
  std::vector<PageHash> computing;   // pages of its prompt that it is about to publish...
  int64_t computing_first_page = 0;  // ... from this page on, ...
  size_t withdrawn = 0;              // ... of which so many are published

  // Proposed to follow `tokens`: engine/speculate.h.
  struct Draft {
    std::vector<TokenId> tokens;
    int64_t forced = 0;              // the first so many are a constraint's, ...
    int source = 0;                  // ... the others of this source
    std::vector<float> confidences;  // of each token
    // What is known of each source: the constraint first, then the engine's drafters.
    std::array<OwnAcceptance, EngineStats::kDraftersMax> sources;
    std::unique_ptr<TextIndex> text;  // of its own tokens, for drafters/own_text.h; ...
    int64_t indexed = 0;              // ... the first so many are in it
    int64_t drafts = 0, proposed = 0, accepted_end = 0;  // for TokenEvent
  };
  Draft draft;

  // While it waits.
  PrefixWaiter waiter;
  int64_t score = 0;
  // Waiting sequences that will use what this one computes, each until so many positions are there.
  struct Follower {
    Sequence* sequence = nullptr;
    int64_t computed = 0;
  };
  std::vector<Follower> followers;
  Sequence* leader = nullptr;
  bool followed = false;  // once at least: it let others pass meanwhile

  // Of engine/tiers: which transfer it waits for, or profits from.
  struct Restore {
    uint64_t transfer = 0;       // 0: none
    bool aside = false;          // it left the queue for that
    bool settled = false;        // nothing more is loaded for it, unless it is retracted
    int64_t shared = 0;          // what the transfer loads up to here is of its prompt
    int64_t begin = 0, end = 0;  // of what was loaded
    // Of that, from each layer of the store.
    std::array<int64_t, CacheStorageStats::kLayersMax> layers = {};
  };
  Restore restore;

  int64_t cached_tokens = -1;   // found at its first admission; -1: not admitted yet
  int64_t restored_tokens = 0;  // of them, loaded
  int64_t admission = 0;        // which one that was of all of the Scheduler's
  double queued_s = 0;

  Held& held(int unit_class) { return held_units[static_cast<size_t>(unit_class)]; }
  const Held& held(int unit_class) const { return held_units[static_cast<size_t>(unit_class)]; }
  // Pages that its units cover.
  int64_t pages() const { return std::ssize(held(kPathClass).units); }
  int64_t length() const { return static_cast<int64_t>(tokens.size()); }
  // Tokens that are known but not computed: more than one while the prompt is being read.
  int64_t pending() const { return length() - computed; }
  // It runs in every step.
  bool decodes() const { return pending() == 1; }

  // Whether the logits of `position` give a prompt token's log-probability that was asked for and
  // not reported yet.
  bool scores_prompt_at(int64_t position) const {
    return position + 1 >= prompt_logprobs_next && position + 1 < prompt_tokens;
  }

  // The tokens whose states may come from the cache: never the last, whose logits are needed, nor
  // one whose logits give a log-probability that was asked for.
  std::span<const TokenId> reusable(bool prompt_only) const {
    int64_t end = length() - 1;
    if (prompt_logprobs_next < prompt_tokens) {
      end = std::min(end, std::max<int64_t>(prompt_logprobs_next - 1, 0));
    }
    if (prompt_only) end = std::min(end, prompt_tokens);
    return std::span(tokens).first(static_cast<size_t>(end));
  }
};

}  // namespace banyan
