#include "router/policy.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "base/random.h"
#include "base/signed.h"

namespace banyan {
namespace {

// A number in [0, 2^32) that depends on the request and the worker.
uint32_t dice(uint64_t id, uint64_t which) {
  return philox(id, which, 0)[0];
}

// Among the workers that may take the request, the one with the smallest `key`; -1: none may.
template <class Key>
int smallest(const RouteContext& context, Key key) {
  int best = -1;
  for (int w = 0; w < std::ssize(context.workers); ++w) {
    if (!context.may_take(w)) continue;
    if (best < 0 || key(w) < key(best)) best = w;
  }
  return best;
}

const WorkerState& state_of(const RouteContext& context, int worker) {
  return at(context.workers, worker);
}

// Keeps the best of the workers it is given.
class Cheapest {
 public:
  explicit Cheapest(const RouteContext& context) : context_(context) {}

  void consider(const HeldPrefix& held) {
    Key key(context_.cost(held), state_of(context_, held.worker).running(),
            dice(context_.request.id, static_cast<uint64_t>(held.worker)));
    if (worker_ >= 0 && key >= key_) return;
    key_ = key;
    worker_ = held.worker;
  }
  int worker() const { return worker_; }

 private:
  using Key = std::tuple<double, int64_t, uint32_t>;
  const RouteContext& context_;
  Key key_;
  int worker_ = -1;
};

}  // namespace

bool RouteContext::may_take(int worker) const {
  const WorkerState& w = at(workers, worker);
  if (!w.present || !w.accepting) return false;
  if (std::ranges::find(request.excluded, worker) != request.excluded.end()) return false;
  if (w.report.pages_total == 0) return true;  // its size is not known yet
  int64_t tokens = request.prompt_tokens + request.output_tokens - held_by(worker).tokens;
  // A request larger than all of its memory is for the worker to refuse or truncate.
  int64_t pages = std::min(tokens / costs.page_size_tokens, w.report.pages_total);
  return w.report.pages_free - w.sent_pages >= pages;
}

HeldPrefix RouteContext::held_by(int worker) const {
  auto found = std::ranges::find(holders, worker, &HeldPrefix::worker);
  return found == holders.end() ? HeldPrefix{.worker = worker} : *found;
}

UsualSpeeds usual_speeds(std::span<const WorkerState> workers) {
  UsualSpeeds sums;
  int64_t prefills = 0, steps = 0;
  for (const WorkerState& w : workers) {
    sums.prefill_tokens_s += w.report.prefill_tokens_s;
    sums.step_ms += w.report.step_ms;
    prefills += w.report.prefill_tokens_s > 0 ? 1 : 0;
    steps += w.report.step_ms > 0 ? 1 : 0;
  }
  return {.prefill_tokens_s = prefills > 0 ? sums.prefill_tokens_s / prefills : 0,
          .step_ms = steps > 0 ? sums.step_ms / steps : 0};
}

double RouteContext::prefill_tokens_s(int worker) const {
  double reported = at(workers, worker).report.prefill_tokens_s;
  if (reported > 0) return reported;
  return usual.prefill_tokens_s > 0 ? usual.prefill_tokens_s : costs.prefill_tokens_s;
}

// A worker that is busy with prompts has no measured step time. Taken as 0, it would attract every
// request.
double RouteContext::step_s(int worker) const {
  double reported = at(workers, worker).report.step_ms;
  return (reported > 0 ? reported : usual.step_ms) / 1000;
}

double RouteContext::wait_s(int worker) const {
  return at(workers, worker).waiting_tokens() / prefill_tokens_s(worker);
}

double RouteContext::prefill_s(const HeldPrefix& held) const {
  return (request.prompt_tokens - held.tokens) / prefill_tokens_s(held.worker) +
         held.loaded_tokens / costs.load_tokens_s;
}

double RouteContext::cost(const HeldPrefix& held) const {
  // If others make a step longer, it is longer for this request's tokens too.
  double output_s = request.output_tokens * step_s(held.worker);
  return wait_s(held.worker) + costs.prefill_weight * prefill_s(held) + output_s;
}

int choose_by_cost(const RouteContext& context) {
  Cheapest cheapest(context);
  int looked_at = 0;
  for (const HeldPrefix& held : context.holders) {
    if (looked_at == context.costs.sampled) break;
    if (!context.may_take(held.worker)) continue;
    cheapest.consider(held);
    ++looked_at;
  }
  auto workers = narrow<int>(context.workers.size());
  if (workers <= context.costs.sampled) {
    for (int w = 0; w < workers; ++w) {
      if (context.may_take(w)) cheapest.consider(context.held_by(w));
    }
    return cheapest.worker();
  }
  // Consecutive workers, starting at one that follows from the request's id; numbers say nothing
  // about load.
  auto first =
      static_cast<int>(dice(context.request.id, context.decision) % narrow<uint32_t>(workers));
  for (int i = 0, sampled = 0; i < workers && sampled < context.costs.sampled; ++i) {
    int w = (first + i) % workers;
    if (!context.may_take(w)) continue;
    cheapest.consider(context.held_by(w));
    ++sampled;
  }
  return cheapest.worker();
}

// As SGLang's router 0.3.2 does (policies/cache_aware.rs).
int choose_cache_aware(const RouteContext& context) {
  int64_t most = 0, least = std::numeric_limits<int64_t>::max();
  for (int w = 0; w < std::ssize(context.workers); ++w) {
    if (!context.may_take(w)) continue;
    most = std::max(most, state_of(context, w).in_flight);
    least = std::min(least, state_of(context, w).in_flight);
  }
  const RouteCosts& costs = context.costs;
  bool uneven =
      most - least > costs.balance_abs_threshold && most > costs.balance_rel_threshold * least;
  auto fewest = [&](int w) {
    return std::tuple(state_of(context, w).in_flight,
                      dice(context.request.id, static_cast<uint64_t>(w)));
  };
  if (uneven) return smallest(context, fewest);
  double worth = costs.cache_threshold * context.request.prompt_tokens;
  for (const HeldPrefix& held : context.holders) {
    if (held.tokens <= worth) break;
    if (context.may_take(held.worker)) return held.worker;
  }
  return smallest(context, fewest);
}

int choose_least_loaded(const RouteContext& context) {
  return smallest(context, [&](int w) {
    return std::tuple(context.wait_s(w), state_of(context, w).running(),
                      dice(context.request.id, static_cast<uint64_t>(w)));
  });
}

int choose_round_robin(const RouteContext& context) {
  auto workers = narrow<int>(context.workers.size());
  for (int i = 0; i < workers; ++i) {
    auto w =
        narrow<int>((context.decision + static_cast<uint64_t>(i)) % static_cast<uint64_t>(workers));
    if (context.may_take(w)) return w;
  }
  return -1;
}

int choose_random(const RouteContext& context) {
  return smallest(context, [&](int w) {
    return dice(context.request.id, context.decision << 16 | static_cast<uint64_t>(w));
  });
}

// The less loaded of two random workers.
int choose_power_of_two(const RouteContext& context) {
  auto thrown = [&](int w) {
    return dice(context.request.id, context.decision << 16 | static_cast<uint64_t>(w));
  };
  int first = smallest(context, thrown), second = -1;
  for (int w = 0; w < std::ssize(context.workers); ++w) {
    if (w == first || !context.may_take(w)) continue;
    if (second < 0 || thrown(w) < thrown(second)) second = w;
  }
  if (second < 0) return first;
  auto load = [&](int w) { return std::tuple(context.wait_s(w), state_of(context, w).running()); };
  return load(second) < load(first) ? second : first;
}

}  // namespace banyan
