// One prefix on its way from a store into the tree: which of its units the store has, the units of
// memory that they are read into, and the path that they are published after.
//
// Units belong to the transfer from begin() until they are published, or given back: not before
// their reads have ended, even if nobody waits any more. Pages are published in order, each with
// what was read of its other classes. Where one fails, those before it stay: what can be resumed is
// the tree's to say, by what arrived.
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

  // Of whole pages of `tokens`, of which the tree had `match`.
  Transfer(TierContext& context, uint64_t number, const PrefixNamespace& name_space,
           std::span<const PrefixToken> tokens, const PrefixMatch& match);
  ~Transfer();

  uint64_t number() const { return number_; }
  Stage stage() const { return stage_; }
  // What the store is asked for, or what of it is loaded.
  const std::vector<TierKey>& keys() const { return wanted_; }
  int64_t tokens() const { return std::ssize(tokens_); }
  // Tokens of whole pages that both prompts begin with.
  int64_t in_common(const Transfer& other) const;
  // Tokens that were published up to.
  int64_t published() const { return published_; }
  // Of them, those of pages that came from each layer of the store.
  const std::array<int64_t, kTierLayersMax>& layer_tokens() const { return layer_tokens_; }
  const LayerBytes& bytes_to_come() const { return bytes_to_come_; }

  void find();
  void take_found(const TierDone& done);
  // What is worth loading, by what the tree has now, to compute `length` tokens in the end.
  RestorePlan plan(int64_t length, int64_t tokens_min, const LayerBytes& bytes_ahead,
                   const UnitCounts& room, const LayerCosts& load, const PrefillCost& prefill);
  // Holds what the tree has of the way to `end`, so that taking units for the rest costs none of
  // it. False, and over, where units are wanting.
  bool begin(int64_t end);
  // Asks for further reads while no more than `bytes_max` are under way.
  void submit(int64_t bytes_max);
  void take_read(const TierDone& done);
  // Puts what came into the tree. Over once nothing is left to come.
  void publish();
  // Asks for nothing more.
  void stop();

  // Adds what it holds of each class.
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
    return page == 0 ? root_key_ : page_keys_[static_cast<size_t>(page - 1)];
  }
  void make_keys(const PrefixMatch& match);
  void ask(const PrefixMatch& match);
  void note_resident(const PrefixMatch& match);
  bool publish_page(size_t first, size_t end);
  void ends_coming(const Unit& unit);
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
  std::vector<TierKey> wanted_;
  Stage stage_ = Stage::kFinding;

  Lease lease_;
  std::vector<Unit> units_;        // in order of pages
  std::vector<TierPiece> pieces_;  // of all of them
  size_t next_ = 0;                // to submit
  size_t next_published_ = 0;
  LayerBytes bytes_to_come_ = {};
  int64_t reading_bytes_ = 0, reading_ = 0, published_ = 0;
  std::array<int64_t, kTierLayersMax> layer_tokens_ = {};
};

}  // namespace banyan
