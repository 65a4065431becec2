// Decides which waiting sequences have their prefix loaded, and how long they wait for it.
//
// A sequence near the head of the queue is offered. If a store has more of its prompt than memory
// does, and loading beats computing, a transfer begins. At the head of the queue the sequence steps
// aside and keeps its order of arrival. It returns (take_ready) when the transfer is over, or when
// its policy lets it wait no longer, and is admitted like any other, after what is in the tree.
// Until then it holds what was loaded for it.
// Sequences whose prompts share enough of the loaded prefix wait for the same transfer until it has
// loaded their common part; they may then load the rest themselves.
// A transfer that lacks room begins when running sequences or other transfers have made some.
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

// Units that transfers may take, and whether sequences run that will give more back.
struct TierRoom {
  UnitCounts units = {};
  bool grows = false;
  // A step in flight may still copy what they hold: nothing is read into those that are taken now
  // before the next call.
  bool read_later = false;
};

class Restores {
 public:
  Restores(TierContext& context, const CacheStorageConfig& config, const PrefillCost& prefill,
           const LoadCost& load);

  // `match` is what the tree has of a waiting sequence's prompt. True: it steps aside, which
  // happens only at the head of the queue. `ask` delivers the store's answers that are already
  // there.
  bool offer(Sequence& s, const PrefixMatch& match, bool its_turn, int64_t now_ns,
             FunctionRef<void()> ask);
  // The sequence continues, or ends.
  void forget(Sequence& s);

  void take(const TierDone& done, int64_t now_ns);
  // Publishes what has arrived. If `room` is not null, begins transfers within the room it gives,
  // and continues those that run.
  using Room = FunctionRef<TierRoom()>;
  void advance(int64_t now_ns, const Room* room);
  // Gives back units whose reads were not requested yet, and requests no more.
  void stop();
  // The same for the transfer that began last. False if that gave nothing back yet.
  bool stop_newest();
  // What was loaded for the sequence that returned last may be evicted, and is loaded again if it
  // was, when its turn comes. False if there is none.
  bool release_newest();
  // A sequence that no longer waits; null if none is left. The caller queues it.
  Sequence* take_ready();

  bool idle() const { return jobs_.empty() && ready_.empty(); }
  // Whether transfers hold units.
  bool loading() const;
  // Whether any of them waits for stored bytes, not only for what another engine computes.
  bool reads() const;
  // Number of sequences that have stepped aside.
  int64_t aside() const;
  // Whether one more may do so early, if `count` more sequences could run.
  bool may_step_aside(int64_t count) const { return !best_effort_ && aside() < count; }
  // Whether there is work that need not wait for the store.
  bool may_begin() const;
  // Whether transfers for sequences other than `s` hold units, or will soon.
  bool others_load(const Sequence& s) const;
  // Pages that future transfers will take for sequences ahead of `s`.
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
    std::vector<TierKey> shared;  // keys in by_key_, by which others join
    int64_t length = 0;           // tokens that the first of them needs
    int64_t until_ns = 0;         // no sequence waits longer than this
    int64_t looked_ns = 0;        // when reads were last requested
    int64_t pages = 0;            // that it will take; before it is found, at most
    bool lacks_room = false;      // and waits for it:
    UnitCounts tried = {};        // the room that was not enough
    bool read_later = false;      // TierRoom says so
    bool gave_way = false;        // to a sequence that needed its units
    double saved_s = 0;           // if all goes well
  };
  using Jobs = std::map<uint64_t, Job>;
  enum class Begun : uint8_t {
    kLoads,
    kLater,    // others hold the room that it needs
    kNothing,  // is worth loading
    kAgain,    // what was found is not what is needed by now
  };
  enum class Settled : uint8_t { kAll, kOwner, kNobody };

  Job* sharing(const Transfer& transfer, int64_t position);
  void attach(Job& job, Sequence& s, const PrefixMatch& match, int64_t shared);
  void wait_from(Job& job, int64_t now_ns);
  void release_served(Job& job);
  void share(Job& job);
  void unshare(Job& job);
  void release(Job& job, Settled settled);
  void let_go(Sequence& s, const Job& job);
  void return_to_queue(Sequence& s);
  RestorePlan plan(const Job& job, const UnitCounts& room, int64_t now_ns) const;
  RestorePlan plan_all(Job& job, int64_t now_ns) const;
  void count_too_dear(const RestorePlan& plan);
  Begun begin(Job& job, const Room& room, int64_t now_ns);
  static bool is_late(const Job& job, int64_t now_ns);
  bool move_on(Job& job, int64_t now_ns, const Room* room);
  int64_t wait_ns(const Job& job, double load_s) const;
  int64_t reading_bytes_max(double since_s);
  LayerBytes bytes_ahead() const;
  UnitCounts share_of_units(double share) const;
  TierRoom room_for(const Job& job, TierRoom room) const;
  UnitCounts computing_left(const Job& job) const;
  bool computes(int layer) const { return context_.store.layer(layer).computes(); }
  bool computes(const RestorePlan& plan) const;

  TierContext& context_;
  const CacheStorageConfig config_;
  const bool best_effort_, waits_for_ever_;
  PrefillCost prefill_;
  LayerCosts load_;
  const LayerCosts guess_;   // of what has not been measured
  int64_t measured_ns_ = 0;  // time of the last read that measured the store
  Jobs jobs_;
  std::unordered_map<TierKey, uint64_t, KeyHash> by_key_;
  std::vector<Sequence*> ready_;
  std::vector<Sequence*> holders_;  // of a lease, in order of their return
  uint64_t last_ = 0;
};

}  // namespace banyan
