// Which worker gets a request: a pure function of what is known of the workers.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "banyan/request.h"

namespace banyan {

// A worker that has room.
struct RouteCandidate {
  size_t worker = 0;           // its place in the router's list
  int64_t in_flight = 0;       // requests that this router has there
  int64_t waiting_tokens = 0;  // prompt tokens of those that have not answered yet
};

class RoutePolicy {
 public:
  virtual ~RoutePolicy() = default;
  // An index into `candidates`, of which there is one at least.
  virtual size_t choose(std::span<const RouteCandidate> candidates,
                        const GenerateRequest& request) = 0;
};

// "least_loaded" (fewest waiting prompt tokens, then fewest requests), "round_robin", "random",
// "power_of_two".
std::span<const std::string_view> route_policies();
// Null: there is none of that name.
std::unique_ptr<RoutePolicy> make_route_policy(std::string_view name, uint64_t seed);

}  // namespace banyan
