#include "fleet/simulated_worker.h"

#include <utility>

#include "base/check.h"
#include "base/signed.h"

namespace banyan {
namespace {

// More than a step produces; events are taken after each step.
constexpr size_t kEventsKept = size_t{1} << 14;

}  // namespace

SimulatedWorker::SimulatedWorker(const SimulatedWorkerConfig& config, uint64_t epoch)
    : config_(config),
      scheduler_(config.scheduler),
      announcer_(scheduler_.tree(), std::nullopt, epoch, kEventsKept) {}

void SimulatedWorker::submit(SimulatedRequest request) {
  auto s = std::make_unique<Sequence>();
  s->id = request.id;
  s->prompt_tokens = std::ssize(request.tokens);
  s->tokens_max = request.tokens_max;
  s->tokens = std::move(request.tokens);
  outputs_[request.id] = request.output;
  scheduler_.enqueue(std::move(s));
}

double SimulatedWorker::begin_step() {
  CHECK(!stepping_);
  scheduler_.plan(plan_);
  if (plan_.spans.empty()) return -1;
  stepping_ = true;
  int64_t prompt_rows = 0, decode_rows = 0;
  for (const PlannedSpan& span : plan_.spans) {
    bool decodes = span.first >= span.sequence->prompt_tokens;
    (decodes ? decode_rows : prompt_rows) += span.count;
  }
  int64_t unit = config_.tokens_per_unit;
  double further_steps = decode_rows > 0 ? unit - 1 : 0;
  return further_steps * config_.times.step_s +
         config_.times.seconds(unit * prompt_rows, unit * decode_rows);
}

void SimulatedWorker::end_step(const std::function<void(SequenceId id, bool last)>& token) {
  CHECK(std::exchange(stepping_, false));
  scheduler_.commit(plan_);
  for (const PlannedSpan& span : plan_.spans) {
    Sequence& s = *span.sequence;
    if (s.pending() > 0) continue;
    SequenceId id = s.id;
    if (s.length() < s.tokens_max) s.tokens.push_back(outputs_.at(id));
    bool last = s.length() == s.tokens_max;
    if (last) {
      outputs_.erase(id);
      scheduler_.remove(&s);
    }
    token(id, last);
  }
}

std::vector<KvEvent> SimulatedWorker::take_events() {
  std::vector<KvEvent> events;
  CHECK(announcer_.log().read(taken_, kEventsKept, events));
  taken_ += events.size();
  return events;
}

LoadReport SimulatedWorker::load() const {
  RadixTree::Use pages = scheduler_.tree().use(kPathClass);
  const StepTimes& times = config_.times;
  int64_t rows = config_.scheduler.prefill_rows_max * config_.tokens_per_unit;
  return {.waiting_tokens = scheduler_.waiting_tokens() * config_.tokens_per_unit,
          .waiting = scheduler_.waiting(),
          .running = scheduler_.running(),
          .pages_free = pages.available(),
          .pages_total = pages.total,
          .prefill_tokens_s = static_cast<double>(rows) / times.seconds(rows, 0),
          .step_ms = times.seconds(0, scheduler_.running()) * 1000};
}

}  // namespace banyan
