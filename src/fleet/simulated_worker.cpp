#include "fleet/simulated_worker.h"

#include <utility>

#include "base/check.h"

namespace banyan {
namespace {

// More than a step makes: they are taken after each.
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
  double unit = static_cast<double>(config_.tokens_per_unit);
  double steps = decode_rows > 0 ? unit : 1;
  return steps * config_.times.step_s +
         unit * (static_cast<double>(prompt_rows) * config_.times.prompt_row_s +
                 static_cast<double>(decode_rows) * config_.times.decode_row_s);
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
  auto rows = static_cast<double>(config_.scheduler.prefill_rows_max * config_.tokens_per_unit);
  double decode_s = times.step_s + static_cast<double>(scheduler_.running()) * times.decode_row_s;
  return {.waiting_tokens = scheduler_.waiting_tokens() * config_.tokens_per_unit,
          .waiting = scheduler_.waiting(),
          .running = scheduler_.running(),
          .pages_free = pages.available(),
          .pages_total = pages.total,
          .prefill_tokens_s = rows / (times.step_s + rows * times.prompt_row_s),
          .step_ms = decode_s * 1000};
}

}  // namespace banyan
