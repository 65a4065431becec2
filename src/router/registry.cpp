// The list of routing policies.
#include <algorithm>
#include <array>

#include "router/policy.h"

namespace banyan {

std::span<const RoutingPolicy> routing_policies() {
  static constexpr auto kPolicies = std::to_array<RoutingPolicy>({
      {"cost", "whoever is expected to be done first, by its queue and what it has of the prompt",
       choose_by_cost},
      {"cache_aware", "the longest prefix while load is balanced, as SGLang's router does",
       choose_cache_aware},
      {"least_loaded", "the fewest tokens to compute, whatever is cached", choose_least_loaded},
      {"round_robin", "each in its turn", choose_round_robin},
      {"random", "any", choose_random},
      {"power_of_two", "the less loaded one of any two", choose_power_of_two},
  });
  return kPolicies;
}

const RoutingPolicy* find_routing_policy(std::string_view name) {
  auto found = std::ranges::find(routing_policies(), name, &RoutingPolicy::name);
  return found == routing_policies().end() ? nullptr : &*found;
}

}  // namespace banyan
