#include "server/status/machine_meter.h"

#include <memory>
#include <utility>

#include "base/os/affinity.h"
#include "base/threads/thread_pool.h"
#include "kernels/select.h"

namespace banyan {
namespace {

// Per measurement; a request that arrives meanwhile waits for all of them.
constexpr double kSeconds = 0.01;

// Measures on separate threads, since the engine's are idle meanwhile.
std::optional<MachineLimits> measure(const Engine& engine, bool pin) {
  EngineStats stats = engine.stats();
  if (stats.running > 0 || stats.queued > 0) return std::nullopt;
  Result<const KernelTable*> kernels = select_kernels(engine.info().kernels);
  if (!kernels) return std::nullopt;
  ThreadPool threads(engine.info().threads);
  if (pin) pin_workers(threads);
  return LimitMeter(threads, kSeconds).limits(limit_probes(**kernels));
}

}  // namespace

void MachineMeter::ask(EngineThread& engine, const EngineConfig& config, Then then) {
  if (limits_) return then(&*limits_);
  waiting_.push_back(std::move(then));
  if (waiting_.size() > 1) return;  // a measurement is already running
  auto measured = std::make_shared<std::optional<MachineLimits>>();
  engine.run([measured, pin = config.pin_threads](Engine& idle) { *measured = measure(idle, pin); },
             [this, measured] { tell(*measured); });
}

void MachineMeter::tell(const std::optional<MachineLimits>& measured) {
  limits_ = measured;
  for (Then& then : std::exchange(waiting_, {})) then(limits_ ? &*limits_ : nullptr);
}

}  // namespace banyan
