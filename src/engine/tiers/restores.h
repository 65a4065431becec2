// Which waiting sequences have their prefix loaded, and for how long they wait for it.
//
// A sequence whose turn is near is offered: where a store has more of its prompt than memory, and
// loading that beats computing it, a transfer begins. When its turn has come it steps aside, keeps
// its place in the order of arrival, and comes back (take_ready) once the transfer is over or its
// policy lets it wait no longer. Then it is admitted as any other, after what is in the tree.
// Others whose prompt begins with what is being loaded wait for the same transfer, until it has
// loaded what they have in common; what they need beyond that they may then load themselves.
//
// Keeps no sequence alive: a caller that ends an attached one calls forget().
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/function_ref.h"
#include "engine/sequence.h"
#include "engine/tiers/rates.h"
#include "engine/tiers/transfer.h"

namespace banyan {

class Restores {
 public:
  Restores(TierContext& context, const CacheStorageConfig& config, const PrefillCost& prefill,
           const LoadCost& load);

  // What the tree has of a waiting sequence's prompt is `match`. True: it steps aside, which only
  // happens when it is its turn. `ask` has the store's answers delivered that are there at once.
  bool offer(Sequence& s, const PrefixMatch& match, bool its_turn, int64_t now_ns,
             FunctionRef<void()> ask);
  // The sequence goes on, or ends.
  void forget(Sequence& s);

  void take(const TierDone& done);
  // Publishes what came; where `room` is not null, begins transfers in the room that it gives for
  // each class, and reads on.
  using Room = FunctionRef<UnitCounts()>;
  void advance(int64_t now_ns, const Room* room);
  // Gives back what was not asked for yet, and asks for nothing more.
  void stop();
  // One that waits no longer; null when there is none left. The caller queues it.
  Sequence* take_ready();

  bool idle() const { return jobs_.empty() && ready_.empty(); }
  // Transfers hold units.
  bool loading() const;
  // Some sequence has stepped aside.
  bool somebody_waits() const;
  // Something can be done without waiting for the store.
  bool may_begin() const { return found_ > 0 || !ready_.empty(); }
  // Pages that transfers to come will take for others than `s`.
  int64_t promised_pages(const Sequence& s) const;
  // Adds the units that are being loaded for `s`.
  void add_coming(const Sequence& s, UnitCounts& coming) const;
  void add_held(UnitCounts& held) const;
  PrefillCost& prefill() { return prefill_; }

 private:
  struct KeyHash {
    size_t operator()(const TierKey& key) const noexcept;
  };
  struct Job {
    std::unique_ptr<Transfer> transfer;
    std::vector<Sequence*> waiting;
    std::vector<TierKey> shared;  // in by_key_, for others
    int64_t length = 0;           // tokens that the first of them needs
    int64_t until_ns = 0;         // nobody waits longer
    int64_t pages = 0;            // that it will take
    double saved_s = 0;           // by loading, if all goes well
  };
  using Jobs = std::map<uint64_t, Job>;

  Job* sharing(const Transfer& transfer);
  void attach(Job& job, Sequence& s, const PrefixMatch& match, int64_t shared);
  void release_served(Job& job);
  void share(Job& job);
  void unshare(Job& job);
  void release(Job& job, bool settled);
  void let_go(Sequence& s, const Job& job);
  bool begin(Job& job, const Room& room, int64_t now_ns);
  bool move_on(Job& job, int64_t now_ns, const Room* room);
  int64_t wait_ns(const Job& job, double load_s) const;
  LayerBytes bytes_ahead() const;

  TierContext& context_;
  const CacheStorageConfig config_;
  const bool best_effort_, waits_for_ever_;
  PrefillCost prefill_;
  LayerCosts load_;
  Jobs jobs_;
  std::unordered_map<TierKey, uint64_t, KeyHash> by_key_;
  std::vector<Sequence*> ready_;
  uint64_t last_ = 0;
  int64_t found_ = 0;  // jobs that wait for room
};

}  // namespace banyan
