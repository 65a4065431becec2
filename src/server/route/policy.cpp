#include "server/route/policy.h"

#include <algorithm>
#include <array>
#include <random>
#include <tuple>

namespace banyan {
namespace {

auto load_of(const RouteCandidate& c) {
  return std::tuple(c.waiting_tokens, c.in_flight);
}

class LeastLoaded final : public RoutePolicy {
 public:
  size_t choose(std::span<const RouteCandidate> candidates, const GenerateRequest&) override {
    auto least = std::ranges::min_element(candidates, {}, load_of);
    return static_cast<size_t>(least - candidates.begin());
  }
};

class RoundRobin final : public RoutePolicy {
 public:
  size_t choose(std::span<const RouteCandidate> candidates, const GenerateRequest&) override {
    auto next = std::ranges::find_if(candidates,
                                     [&](const RouteCandidate& c) { return c.worker >= next_; });
    if (next == candidates.end()) next = candidates.begin();
    next_ = next->worker + 1;
    return static_cast<size_t>(next - candidates.begin());
  }

 private:
  size_t next_ = 0;
};

class Random final : public RoutePolicy {
 public:
  Random(uint64_t seed, size_t choices) : random_(seed), choices_(choices) {}
  size_t choose(std::span<const RouteCandidate> candidates, const GenerateRequest&) override {
    std::uniform_int_distribution<size_t> any(0, candidates.size() - 1);
    size_t best = any(random_);
    for (size_t i = 1; i < choices_; ++i) {
      size_t other = any(random_);
      if (load_of(candidates[other]) < load_of(candidates[best])) best = other;
    }
    return best;
  }

 private:
  std::mt19937_64 random_;
  size_t choices_;
};

constexpr auto kPolicies =
    std::to_array<std::string_view>({"least_loaded", "round_robin", "random", "power_of_two"});

}  // namespace

std::span<const std::string_view> route_policies() {
  return kPolicies;
}

std::unique_ptr<RoutePolicy> make_route_policy(std::string_view name, uint64_t seed) {
  if (name == "least_loaded") return std::make_unique<LeastLoaded>();
  if (name == "round_robin") return std::make_unique<RoundRobin>();
  if (name == "random") return std::make_unique<Random>(seed, 1);
  if (name == "power_of_two") return std::make_unique<Random>(seed, 2);
  return nullptr;
}

}  // namespace banyan
