// Many simulated workers under the real choice of a router, on one simulated clock: arrivals by a
// trace, events and load reports that take their time, workers that die and come back empty.
//
// A worker that dies takes its streams with it: what a client has of them is resubmitted, as
// `banyan route` does, so no request is lost. Where all workers are full, requests wait at the
// router. Everything runs on the caller's thread; a run is a function of its arguments.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "fleet/simulated_worker.h"
#include "replay/trace.h"
#include "router/policy.h"

namespace banyan {

struct FleetSimulation {
  SimulatedWorkerConfig worker;
  int workers = 8;
  // The workers are divided into so many cells with a router each. Who comes goes to a cell by a
  // consistent hash of its first page, as long as that has at most 1.25 times the mean's requests.
  int cells = 1;
  const RoutingPolicy* policy = &routing_policies().front();
  RouteCosts costs;

  double speedup = 1;  // of the trace's clock
  int copies = 1;      // of the trace, side by side, each with prefixes of its own
  int rounds = 1;      // of it, one after the other
  double round_s = 0;  // from one to the next
  double event_delay_s = 0.01;
  double report_interval_s = 0.1;
  double deaths_per_worker_hour = 0;
  double restart_s = 60;
  uint64_t seed = 0;
};

struct FleetReport {
  int64_t requests = 0;
  int64_t ended = 0;          // all of them, or some were lost
  int64_t prompt_tokens = 0;  // of all submissions to workers, ...
  int64_t cached_tokens = 0;  // ... found there
  int64_t deaths = 0;
  int64_t resubmitted = 0;          // for a worker died
  int64_t queued = 0;               // times that nobody had room
  int64_t gaps = 0;                 // times that a view found events missing
  double end_s = 0;                 // simulated
  std::vector<double> ttft_s;       // ascending
  std::vector<double> latency_s;    // until the last token; ascending
  std::vector<double> decision_us;  // real time, without hashing; ascending

  double hit_rate() const {
    return static_cast<double>(cached_tokens) / static_cast<double>(prompt_tokens);
  }
};

// `progress` is called now and then with the requests that ended.
FleetReport simulate_fleet(const Trace& trace, const FleetSimulation& simulation,
                           const std::function<void(int64_t)>& progress = {});

// How fast the trace must be played for prompts and outputs, all computed, to take `load` of what
// the workers can do.
double speedup_for_load(const Trace& trace, const FleetSimulation& simulation, double load);

}  // namespace banyan
