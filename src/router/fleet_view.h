// What a router knows about workers that share one model, and where it sends a request: their
// prefixes (MetaTree), their load, the requests it sent them recently, and a policy.
//
// Only workers with the same state digest belong together: their keys are made from it, so the
// prefixes of others are never found. Workers are identified by numbers from 0 on, which the caller
// assigns and may reuse after remove().
//
// No sockets and no clock: messages of a worker's stream (router/event_stream.h) come in through
// apply(), and times are arguments. One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <queue>
#include <span>
#include <vector>

#include "router/event_stream.h"
#include "router/meta_tree.h"
#include "router/policy.h"

namespace banyan {

struct FleetConfig {
  StateClasses classes;
  int workers_max = 128;
  int64_t entries_max = int64_t{1} << 23;
  const RoutingPolicy* policy = &routing_policies().front();
  RouteCosts costs;  // page_size_tokens is taken from `classes`
};

struct RouteChoice {
  int worker = -1;            // -1: no worker has room
  int64_t cached_tokens = 0;  // of the prompt, as far as is known
  int64_t new_tokens = 0;
  double wait_s = 0, prefill_s = 0;  // expected
};

class FleetView {
 public:
  explicit FleetView(const FleetConfig& config);

  // Adds a worker of which nothing is known yet. Requires that no worker has this number.
  void add(int worker);
  void remove(int worker);
  // Whether it takes requests: not while it drains or does not answer.
  void set_accepting(int worker, bool accepting);

  // False: an event before this one is missing, so it cannot be used. The stream must be requested
  // again from position(worker) on.
  bool apply(int worker, const KvMessage& message, int64_t now_ns);
  // The position in its events up to which they are known.
  KvPosition position(int worker) const;
  // Clears what removed workers left, and expires predictions. Call it a few times per second.
  void tick(int64_t now_ns);

  RouteChoice choose(const RouteRequest& request, int64_t now_ns);
  // The request was sent to the chosen worker, so its prefix is expected to be cached there soon.
  void sent(const RouteChoice& choice, const RouteRequest& request, int64_t now_ns);
  // The request ended, with or without success.
  void ended(int worker);

  const WorkerState& worker(int number) const { return states_[number]; }
  const MetaTree& tree() const { return tree_; }
  // The slot of the worker in tree(); -1: none.
  int slot(int worker) const { return links_[worker].slot; }
  int64_t decisions() const { return decisions_; }
  int64_t gaps() const { return gaps_; }  // number of times that apply() found a gap

 private:
  struct Link {
    int slot = -1;
    int filling = -1;  // the slot that an arriving snapshot fills
    uint64_t epoch = 0;
    uint64_t next = 0;  // sequence number
  };
  struct Prediction {
    int64_t end_ns = 0;
    int worker = 0, slot = 0;
    std::vector<PageKey> pages;
    bool operator<(const Prediction& other) const { return end_ns > other.end_ns; }
  };

  bool begin(int worker, const KvHello& hello);
  bool apply_events(int worker, const KvEvents& events);
  bool apply_snapshot(int worker, const KvSnapshotPart& part);
  void start_anew(Link& link);
  void find_holders(const RouteRequest& request);

  FleetConfig config_;
  MetaTree tree_;
  std::vector<WorkerState> states_;  // by worker, as links_
  std::vector<Link> links_;
  std::vector<int> worker_of_slot_;
  std::vector<HeldPrefix> holders_;  // for the request being placed
  std::priority_queue<Prediction> predictions_;
  uint64_t decisions_ = 0;
  int64_t gaps_ = 0;
};

}  // namespace banyan
