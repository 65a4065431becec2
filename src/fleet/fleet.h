// Simulated workers behind a real router's choice, on one simulated clock: arrivals from a trace,
// events and load reports with delays, and workers that die and restart empty.
//
// When a worker dies, its streams are resubmitted with what their clients have received, as `banyan
// route` does, so no request is lost. While all workers are full, requests wait at the router.
// Everything runs on the caller's thread; a run is a function of its arguments.
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
  // Number of cells that the workers are divided into, each with its own router. A request goes to
  // a cell by a consistent hash of its first page, unless the cell has more than 1.25 times the
  // mean's requests.
  int cells = 1;
  const RoutingPolicy* policy = &routing_policies().front();
  RouteCosts costs;

  double speedup = 1;  // of the trace's clock
  int copies = 1;      // run concurrently, each with prefixes of its own
  int rounds = 1;      // run one after another
  double round_s = 0;  // between the starts of two rounds
  double event_delay_s = 0.01;
  double report_interval_s = 0.1;
  double deaths_per_worker_hour = 0;
  double restart_s = 60;
  uint64_t seed = 0;
};

struct FleetReport {
  int64_t requests = 0;
  int64_t ended = 0;          // all requests, unless some were lost
  int64_t prompt_tokens = 0;  // of all submissions to workers, ...
  int64_t cached_tokens = 0;  // ... found there
  int64_t deaths = 0;
  int64_t resubmitted = 0;          // after a worker died
  int64_t queued = 0;               // number of times that no worker had room
  int64_t gaps = 0;                 // number of times that a view found events missing
  double end_s = 0;                 // simulated
  std::vector<double> ttft_s;       // ascending
  std::vector<double> latency_s;    // until the last token; ascending
  std::vector<double> decision_us;  // real time, without hashing; ascending

  double hit_rate() const { return static_cast<double>(cached_tokens) / prompt_tokens; }
};

// `progress` is called occasionally with the number of finished requests.
FleetReport simulate_fleet(const Trace& trace, const FleetSimulation& simulation,
                           const std::function<void(int64_t)>& progress = {});

// The speedup of the trace at which prompts and outputs, all computed, take the share `load` of the
// workers' capacity.
double speedup_for_load(const Trace& trace, const FleetSimulation& simulation, double load);

}  // namespace banyan
