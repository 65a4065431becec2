// Policies that choose a worker for a request, as functions of what the router knows. registry.cpp
// lists them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "cache/kv_event.h"

namespace banyan {

// What a policy needs to know about a request.
struct RouteRequest {
  std::span<const PageKey> pages;  // of the prompt's full pages, without one that ends it
  int64_t prompt_tokens = 0;
  int64_t output_tokens = 0;        // an estimate
  uint64_t id = 0;                  // hash of its own id: breaks ties among workers
  std::span<const int> excluded{};  // workers that were tried before
};

// What is known about a worker when a request is placed.
struct WorkerState {
  bool present = false;    // a worker has this number
  bool accepting = false;  // it takes requests
  LoadReport report;
  int64_t reported_ns = 0;
  // Sent by this router since that report.
  int64_t sent_tokens = 0;  // of prompts, without what the worker had cached
  int64_t sent_pages = 0;   // needed by these and their outputs
  int64_t sent_requests = 0;
  int64_t in_flight = 0;  // requests of this router that are not finished

  double waiting_tokens() const { return static_cast<double>(report.waiting_tokens + sent_tokens); }
  int64_t running() const { return report.running + report.waiting + sent_requests; }
};

// How much of the request's prompt a worker has.
struct HeldPrefix {
  int worker = 0;
  int64_t tokens = 0;         // number that need not be computed, ...
  int64_t loaded_tokens = 0;  // ... of which these must be loaded from storage first
};

struct RouteCosts {
  double prefill_weight = 1.5;     // of loading and computing, relative to waiting
  int sampled = 8;                 // holders that are considered, and other workers
  double prefill_tokens_s = 8000;  // assumed until any worker reports its own
  double load_tokens_s = 200'000;  // from storage
  int64_t page_size_tokens = 64;

  // For cache_aware, with SGLang's names and values: the share of a prompt that makes a prefix
  // worth following, and the allowed difference between the largest and the smallest number of
  // requests.
  double cache_threshold = 0.3;
  int64_t balance_abs_threshold = 64;
  double balance_rel_threshold = 1.5;
};

// Means over the workers that have reported their speed; 0: none has.
struct UsualSpeeds {
  double prefill_tokens_s = 0, step_ms = 0;
};
UsualSpeeds usual_speeds(std::span<const WorkerState> workers);

struct RouteContext {
  const RouteRequest& request;
  std::span<const WorkerState> workers;
  std::span<const HeldPrefix> holders;  // the longest prefix first
  const RouteCosts& costs;
  UsualSpeeds usual = {};  // of workers that have not reported theirs
  uint64_t decision = 0;   // number of earlier decisions

  bool may_take(int worker) const;
  // By workers that have it cached.
  HeldPrefix held_by(int worker) const;
  // Expected seconds until the first token, and for the output.
  double cost(const HeldPrefix& held) const;
  double prefill_s(const HeldPrefix& held) const;
  double wait_s(int worker) const;
  double prefill_tokens_s(int worker) const;
  double step_s(int worker) const;
};

struct RoutingPolicy {
  std::string_view name;
  std::string_view summary;
  int (*choose)(const RouteContext& context);  // the worker's number; -1: no worker has room
};

std::span<const RoutingPolicy> routing_policies();
// Null: there is no policy of that name.
const RoutingPolicy* find_routing_policy(std::string_view name);

int choose_by_cost(const RouteContext& context);
int choose_cache_aware(const RouteContext& context);
int choose_least_loaded(const RouteContext& context);
int choose_round_robin(const RouteContext& context);
int choose_random(const RouteContext& context);
int choose_power_of_two(const RouteContext& context);

}  // namespace banyan
