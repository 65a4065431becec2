// Which worker gets a request: policies, as functions of what a router knows. registry.cpp is THE
// LIST.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "cache/kv_event.h"

namespace banyan {

// What choosing needs of a request.
struct RouteRequest {
  std::span<const PageKey> pages;  // of the prompt's full pages, but for one that it ends with
  int64_t prompt_tokens = 0;
  int64_t output_tokens = 0;        // as far as anybody can guess
  uint64_t id = 0;                  // a hash of its own id: whom it meets where all else is equal
  std::span<const int> excluded{};  // workers that were tried before
};

// What is known of a worker when a request is to be placed.
struct WorkerState {
  bool present = false;    // a worker has this number
  bool accepting = false;  // it takes requests
  LoadReport report;
  int64_t reported_ns = 0;
  // By this router, after that report.
  int64_t sent_tokens = 0;  // of prompts, not counting what the worker had
  int64_t sent_pages = 0;   // that these and their outputs take
  int64_t sent_requests = 0;
  int64_t in_flight = 0;  // requests of this router that have not ended

  double waiting_tokens() const { return static_cast<double>(report.waiting_tokens + sent_tokens); }
  int64_t running() const { return report.running + report.waiting + sent_requests; }
};

// How much of the request's prompt a worker has.
struct HeldPrefix {
  int worker = 0;
  int64_t tokens = 0;         // need not be computed; ...
  int64_t loaded_tokens = 0;  // ... of them, to be loaded from below its memory
};

struct RouteCosts {
  double prefill_weight = 1.5;     // of loading and computing, against waiting for others
  int sampled = 8;                 // workers that are looked at besides holders; so many of those
  double prefill_tokens_s = 8000;  // of a worker that has not said
  double load_tokens_s = 200'000;  // from below memory
  int64_t page_size_tokens = 64;

  // Of cache_aware, by SGLang's names and with its values: the part of a prompt that makes a prefix
  // worth going to, and by how much the most and the fewest requests may differ.
  double cache_threshold = 0.3;
  int64_t balance_abs_threshold = 64;
  double balance_rel_threshold = 1.5;
};

struct RouteContext {
  const RouteRequest& request;
  std::span<const WorkerState> workers;
  std::span<const HeldPrefix> holders;  // the longest prefix first
  const RouteCosts& costs;
  uint64_t decision = 0;  // how many there were before

  bool may_take(int worker) const;
  // By whom it need not be computed.
  HeldPrefix held_by(int worker) const;
  // Until its first token, and what its output costs; seconds.
  double cost(const HeldPrefix& held) const;
  double prefill_s(const HeldPrefix& held) const;
  double wait_s(int worker) const;
};

struct RoutingPolicy {
  std::string_view name;
  std::string_view summary;
  int (*choose)(const RouteContext& context);  // the worker's number; -1: nobody has room
};

std::span<const RoutingPolicy> routing_policies();
// Null: there is none of that name.
const RoutingPolicy* find_routing_policy(std::string_view name);

int choose_by_cost(const RouteContext& context);
int choose_cache_aware(const RouteContext& context);
int choose_least_loaded(const RouteContext& context);
int choose_round_robin(const RouteContext& context);
int choose_random(const RouteContext& context);
int choose_power_of_two(const RouteContext& context);

}  // namespace banyan
