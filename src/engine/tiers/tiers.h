// What the scheduler knows of a store of prefixes beyond memory: sequences that wait may be offered
// to it, units come from it into the tree, and what the tree holds is written to it. Owns the store
// and delivers its answers; who decides what is read and written: restores.h, writer.h.
//
// Nothing is read into a unit between the planning of a step and its launch: copies that the step
// begins with may still look at what the unit held. So transfers begin, and read on, in advance()
// alone, before a step is planned.
//
// One thread, the engine's. The tree must outlive it.
#pragma once

#include <functional>
#include <memory>

#include "banyan/config.h"
#include "engine/tiers/context.h"
#include "engine/tiers/restores.h"
#include "engine/tiers/writer.h"

namespace banyan {

struct TierSetup {
  std::unique_ptr<TierStore> store;
  StateDigest states;
  CacheStorageConfig config;
  UnitPieces pieces;
  PrefillCost prefill;
  LoadCost load;
  std::function<int64_t()> now_ns;  // steady
};

class Tiers {
 public:
  Tiers(RadixTree& tree, TierSetup setup);
  // Writes what is left, for so long as the config says, and waits for what is under way.
  ~Tiers();

  // Before a step is planned.
  void advance(Restores::Room room);
  // Whether `s`, of whose prompt the tree has `match`, waits for a transfer instead of being
  // admitted; or, before its turn, nothing but begins one.
  bool offer(Sequence& s, const PrefixMatch& match, bool its_turn);
  // Whom take_ready() gave is queued again.
  Sequence* take_ready() { return restores_.take_ready(); }
  // The sequence is admitted after `s.computed` positions, or ends.
  void admitted(Sequence& s);
  void forget(Sequence& s);
  // Whether the snapshots that the node is about to get will soon be dropped; they stay after all.
  void passes(RadixNode& node, bool passing);
  void stays(RadixNode& node);
  int64_t promised_pages(const Sequence& s) const { return restores_.promised_pages(s); }
  void add_coming(const Sequence& s, UnitCounts& coming) const { restores_.add_coming(s, coming); }

  // Somebody needs units that transfers hold: waits for them to end. False if there were none.
  bool give_way();
  // Nothing is to be computed: waits for the store, if somebody waits for that, and does what was
  // left for this time. True: a sequence waits.
  bool idle();
  // A step computed so much of prompts, and little else.
  void observe(double operations, double seconds) {
    restores_.prefill().observe(operations, seconds);
  }
  double operations(int64_t begin, int64_t end) {
    return restores_.prefill().operations(begin, end);
  }

  void clear();
  const CacheStorageStats& stats();
  // Adds what transfers hold of each class.
  void add_held(UnitCounts& held) const;

 private:
  void take_done();
  void flush();
  void count_restored(const Sequence& s);
  static void look_at(const TierStore& store, CacheLayerStats& stats);

  std::unique_ptr<TierStore> store_;
  std::function<int64_t()> now_ns_;
  const double flush_s_;
  TierContext context_;
  Writer writer_;
  Restores restores_;
  std::vector<TierDone> done_;
  int64_t looked_ns_ = 0;  // at the store's statistics
  bool was_idle_ = false;
};

}  // namespace banyan
