// One prefix on its way from a store into the tree: which of its units the store has, the units of
// memory that they are read into, and the path that they are published after.
//
// Units belong to the transfer from begin() until they are published or given back. They are given
// back only after their reads have ended, even if no sequence waits any more. Pages are published
// in order, each with those units of its other classes that were read. If one fails, those before
// it stay; the tree decides what can be resumed with them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cache/radix_tree.h"
#include "engine/tiers/context.h"
#include "engine/tiers/restore_plan.h"

namespace banyan {

class Transfer {
 public:
  enum class Stage : uint8_t {
    kFinding,  // the store is asked what it has
    kFound,    // ... and has answered
    kLoading,
    kOver,
  };

  // Of whole pages of a prompt: all of `tokens` but the last, which follows them. The tree has
  // `match`.
  Transfer(TierContext& context, uint64_t number, const PrefixNamespace& name_space,
           std::span<const PrefixToken> tokens, const PrefixMatch& match, int priority);
  ~Transfer();

  uint64_t number() const { return number_; }
  Stage stage() const { return stage_; }
  // The units that the store is asked for, or that are loaded.
  const std::vector<TierKey>& keys() const { return wanted_; }
  int64_t tokens() const { return std::ssize(tokens_); }
  // Tokens in whole pages at the common beginning of both prompts.
  int64_t in_common(const Transfer& other) const;
  // Number of tokens published.
  int64_t published() const { return published_; }
  // Published tokens by the layer of the store that their pages came from.
  const std::array<int64_t, kTierLayersMax>& layer_tokens() const { return layer_tokens_; }
  const LayerBytes& bytes_to_come() const { return bytes_to_come_; }
  // Whether the bytes to come are all still to be computed, by another engine.
  bool only_computes() const;
  // Whether reads could be requested, and none is in progress.
  bool is_starved() const { return reading_ == 0 && next_ < units_.size(); }
  // Whether it holds units for what another engine computes.
  bool computes() const { return computes_; }

  void find();
  void take_found(const TierDone& done);
  // What is worth loading to compute `length` tokens, given what the tree has now. `room` counts
  // what the tree could evict, this prefix included.
  RestorePlan plan(int64_t length, int64_t tokens_min, const LayerBytes& bytes_ahead,
                   const UnitCounts& room, const LayerCosts& load, const PrefillCost& prefill);
  // Pages of the path to `end` that the tree lacked when that was planned.
  int64_t missing_pages(int64_t end) const;
  // Whether the tree has lost pages that the store was not asked for.
  bool outdated() const;
  // Leases what the tree has of the path to `end`, so that allocating units for the rest does not
  // evict it. False, and over, if units are missing.
  bool begin(int64_t end);
  // Requests further reads while at most `bytes_max` are in flight.
  void submit(int64_t bytes_max);
  void take_read(const TierDone& done);
  // Publishes what has arrived. Over when nothing is left to arrive.
  void publish();
  // Requests nothing more. False if there was nothing more to request.
  bool stop();
  // Of what was published up to `end` at most.
  Lease lease(int64_t end) const;

  // Adds the units of each class that it holds.
  void add_held(UnitCounts& held) const;

 private:
  enum class UnitState : uint8_t { kWaiting, kReading, kRead, kPublished, kGone };
  struct Unit {
    int32_t page = 0;
    int unit_class = 0;
    int32_t unit = -1;
    UnitState state = UnitState::kWaiting;
    int expected = 0, layer = 0;  // that has it by find(), and that it came from
    bool unwritten = false;
    size_t first_piece = 0;
  };

  std::span<const PrefixToken> page_tokens(int64_t page) const;
  const PageKey& parent_key(int64_t page) const {
    return page == 0 ? root_key_ : page_keys_[page - 1];
  }
  void make_keys(const PrefixMatch& match);
  void ask(const PrefixMatch& match);
  void note_resident(const PrefixMatch& match);
  bool publish_page(size_t first, size_t end);
  void ends_coming(const Unit& unit);
  int32_t take_out(Unit& unit);
  void drop(Unit& unit);
  void finish();

  TierContext& context_;
  const uint64_t number_;
  const int64_t clears_;
  RadixNode* root_;
  std::vector<PrefixToken> tokens_;
  PageKey root_key_;
  std::vector<PageKey> page_keys_;
  PrefixUnits units_of_;
  std::vector<RestoreUnit> asked_;
  int64_t resident_pages_ = 0;  // at the beginning of the path, when it was asked
  std::vector<TierKey> wanted_;
  Stage stage_ = Stage::kFinding;

  Lease lease_;
  std::vector<Unit> units_;        // in order of pages
  std::vector<TierPiece> pieces_;  // of all of them
  size_t next_ = 0;                // the next one to submit
  size_t next_published_ = 0;
  LayerBytes bytes_to_come_ = {};
  UnitCounts held_ = {};
  int64_t reading_bytes_ = 0, reading_ = 0, published_ = 0;
  bool computes_ = false, stopped_ = false;
  std::array<int64_t, kTierLayersMax> layer_tokens_ = {};
};

}  // namespace banyan
