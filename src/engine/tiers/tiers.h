// The scheduler's view of a store of prefixes outside memory. Waiting sequences may be offered to
// it, units are read from it into the tree, and the tree's units are written to it. Owns the store
// and delivers its answers; restores.h decides what is read, writer.h what is written.
//
// Nothing is read into a unit between the planning of a step and its launch: copies at the start of
// the step may still read what the unit held. So transfers begin and continue only in advance(),
// before a step is planned.
//
// Engine's thread only. The tree must outlive it.
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
  // Writes what is left, for as long as the config allows, and waits for work in flight.
  ~Tiers();

  // Call before a step is planned.
  void advance(Restores::Room room);
  // `match` is what the tree has of the prompt of `s`. Returns whether `s` waits for a transfer
  // instead of being admitted. Before its turn, this at most begins a transfer.
  bool offer(Sequence& s, const PrefixMatch& match, bool its_turn);
  // Whether another sequence may step aside while there are no rows for it, if `count` more could
  // run.
  bool may_step_aside(int64_t count) const { return restores_.may_step_aside(count); }
  // A sequence that is to be queued again; null if there is none.
  Sequence* take_ready() { return restores_.take_ready(); }
  // The sequence is admitted after `s.computed` positions, or ends.
  void admitted(Sequence& s);
  void forget(Sequence& s);
  // Marks whether the snapshots that the node is about to get will be dropped soon; stays()
  // reverses it.
  void passes(RadixNode& node, bool passing);
  void stays(RadixNode& node);
  int64_t promised_pages(const Sequence& s) const { return restores_.promised_pages(s); }
  bool others_load(const Sequence& s) const { return restores_.others_load(s); }
  void add_coming(const Sequence& s, UnitCounts& coming) const { restores_.add_coming(s, coming); }

  // Units are needed: stops the transfer that began last, or lets what was loaded last be evicted.
  // If `may_wait`, waits a little for reads to end, and for a sequence that runs alone also for
  // writes. False if there was nothing to give.
  bool give_way(bool alone, bool may_wait);
  // There is nothing to compute. Does deferred work, and waits for the store if transfers do. True:
  // transfers are in progress.
  bool idle();
  // Records a step that did little but read prompts.
  void observe(double operations, double seconds) {
    restores_.prefill().observe(operations, seconds);
  }
  double operations(int64_t begin, int64_t end) {
    return restores_.prefill().operations(begin, end);
  }

  void clear();
  const CacheStorageStats& stats();
  // Adds the units of each class that transfers hold.
  void add_held(UnitCounts& held) const;

 private:
  void take_done();
  void flush();
  void count_restored(Sequence& s);
  static void look_at(const TierStore& store, CacheLayerStats& stats);

  std::unique_ptr<TierStore> store_;
  std::function<int64_t()> now_ns_;
  const double flush_s_;
  TierContext context_;
  Writer writer_;
  Restores restores_;
  std::vector<TierDone> done_;
  int64_t looked_ns_ = 0;  // when the store's statistics were last read
  bool was_idle_ = false;
};

}  // namespace banyan
