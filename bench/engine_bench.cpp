// The cost of a step apart from the model: planning it, building its batch, committing it.
//
//   cmake --preset release -DBANYAN_BENCH=ON
//   cmake --build --preset release --target engine_bench
//
//   build/release/bench/engine_bench
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstring>

#include "base/os/affinity.h"
#include "base/random.h"
#include "cache/state_pools.h"
#include "engine/batch_builder.h"
#include "engine/draws/draw_builder.h"
#include "engine/schedule/scheduler.h"
#include "kernels/select.h"

namespace banyan {
namespace {

constexpr int64_t kPrompt = 512, kOutput = 1 << 14;
constexpr int kPage = 64;

std::unique_ptr<Sequence> cold_sequence(SequenceId id, int64_t output) {
  auto s = std::make_unique<Sequence>();
  s->id = id;
  s->prompt_tokens = kPrompt;
  s->tokens_max = kPrompt + output;
  s->tokens.reserve(static_cast<size_t>(s->tokens_max));
  for (int64_t i = 0; i < kPrompt; ++i) {
    s->tokens.push_back(static_cast<TokenId>(id * 7919 + static_cast<SequenceId>(i)));
  }
  return s;
}

SchedulerConfig config_of(int64_t sequences, bool radix_cache) {
  return {.policy = SchedulePolicy::kLpm,
          .radix_cache = radix_cache,
          .running_max = static_cast<int>(sequences),
          .prefill_rows_max = kPrompt,
          .classes = {.page_size_tokens = kPage},
          .units = {sequences * (kPrompt + kOutput) / kPage}};
}

struct Steps {
  explicit Steps(const SchedulerConfig& config) : classes(config.classes), scheduler(config) {}

  void run() {
    scheduler.plan(plan);
    build_batch(plan, classes, batch, uses);
    benchmark::DoNotOptimize(batch.tokens.data());
    scheduler.commit(plan);
    for (const PlannedSpan& span : plan.spans) {
      if (span.sequence->pending() == 0) span.sequence->tokens.push_back(7);
    }
  }

  StateClasses classes;
  Scheduler scheduler;
  StepPlan plan;
  Batch batch;
  std::vector<LogitRowUse> uses;
};

// A step in which every sequence gets a token; the argument is how many there are.
void decode_step(benchmark::State& state) {
  Steps steps(config_of(state.range(0), true));
  for (int64_t id = 1; id <= state.range(0); ++id) {
    steps.scheduler.enqueue(cold_sequence(static_cast<SequenceId>(id), kOutput));
  }
  for (int64_t i = 0; i < state.range(0); ++i) steps.run();
  for (auto _ : state) steps.run();
}
BENCHMARK(decode_step)
    ->Arg(1)
    ->Arg(8)
    ->Arg(32)
    ->Arg(256)
    ->Iterations(4000)
    ->Unit(benchmark::kMicrosecond);

// From arrival to end of a prompt of 512 tokens that shares nothing, with and without the tree: the
// difference is what the cache costs where it never helps.
void cold_prompt(benchmark::State& state) {
  Steps steps(config_of(8, state.range(0) != 0));
  SequenceId id = 0;
  for (auto _ : state) {
    steps.scheduler.enqueue(cold_sequence(++id, 1));
    steps.run();
    steps.scheduler.remove(steps.plan.spans[0].sequence);
  }
}
BENCHMARK(cold_prompt)->Arg(1)->Arg(0)->ArgName("radix_cache")->Unit(benchmark::kMicrosecond);

// The slots of Ling 3 Tiny: of 24 layers 18 are recurrent.
std::vector<StateSpec> recurrent_states() {
  std::vector<StateSpec> specs;
  for (int layer = 0; layer < 18; ++layer) {
    StateSpec slot = {.unit = StateUnit::kSlot, .reach = StateReach::kPoint};
    slot.heads = 3, slot.width = 3 * 16 * 128;
    specs.push_back(slot);  // convolution
    slot.heads = 16, slot.width = 128 * 128;
    specs.push_back(slot);
  }
  return specs;
}

// Resuming from a snapshot: one slot copied to another, of so many that no cache holds them. The
// argument is the threads; bytes are those read and those written.
void restore_snapshot(benchmark::State& state) {
  constexpr int32_t kSlots = 64;
  std::vector<StateSpec> specs = recurrent_states();
  constexpr int kSlotClass = 1;  // after the path's pages, of which there are none
  StatePools pools = *StatePools::create(specs, kPage, {0, kSlots});
  for (StateId id = 0; id < std::ssize(specs); ++id) {
    std::memset(pools.pool(id), 1, pools.spec(id).unit_bytes(kPage) * kSlots);
  }
  ThreadPool threads(static_cast<int>(state.range(0)));
  pin_workers(threads);
  const KernelTable& kernels = **select_kernels("auto");
  int32_t slot = 0;
  for (auto _ : state) {
    UnitCopy copy = {.unit_class = kSlotClass, .from = slot, .to = (slot + kSlots / 2) % kSlots};
    pools.copy(kernels, {.threads = &threads}, {&copy, 1}, &copy);
    slot = (slot + 1) % kSlots;
  }
  int64_t slot_bytes = unit_bytes(specs, pools.classes())[kSlotClass];
  state.SetBytesProcessed(2 * slot_bytes * state.iterations());
}
BENCHMARK(restore_snapshot)
    ->Arg(1)
    ->Arg(2)
    ->ArgName("threads")
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

// One token of 151,936 drawn from logits such as a model's: most of them far below the best.
void draw_token(benchmark::State& state, const SamplingParams& params, bool masked) {
  constexpr size_t kVocabulary = 151936;
  std::vector<float> logits(kVocabulary);
  for (size_t t = 0; t < kVocabulary; ++t) {
    logits[t] = static_cast<float>(12 * uniform(1, t, 0) * uniform(2, t, 0) +
                                   12 * (uniform(3, t, 0) > 0.9995));
  }
  std::vector<uint32_t> mask;
  if (masked) mask.assign(kVocabulary / 32, 0);
  for (size_t i = 0; i < mask.size(); i += 97) mask[i] = 5;
  DrawRow draw = draw_row(params, 0);
  draw.mask = masked ? 0 : -1;
  int32_t argmax = 0;
  float log_sum_exp = 25;
  DrawResult result;
  const KernelTable& kernels = **select_kernels("auto");
  for (auto _ : state) {
    ++draw.noise.position;
    kernels.draw({.logits = logits.data(),
                  .argmax = &argmax,
                  .log_sum_exp = &log_sum_exp,
                  .rows = 1,
                  .vocabulary = kVocabulary,
                  .draws = &draw,
                  .masks = mask.data(),
                  .results = &result});
    benchmark::DoNotOptimize(result);
  }
}
BENCHMARK_CAPTURE(draw_token, temperature, SamplingParams{}, false);
BENCHMARK_CAPTURE(draw_token, top_p, SamplingParams{.top_p = 0.95f}, false);
BENCHMARK_CAPTURE(draw_token, top_k, SamplingParams{.top_k = 20}, false);
BENCHMARK_CAPTURE(draw_token, mask, SamplingParams{}, true);

}  // namespace
}  // namespace banyan

BENCHMARK_MAIN();
