// The cost of a token after a long context and after a short one, and how many more bytes it reads.
//
//   cmake --preset release -DBANYAN_BENCH=ON
//   cmake --build --preset release --target context_bench
//
//   build/release/bench/context_bench DIR QUANTIZATION [SAMPLES [KERNELS [MLA_PREFILL [CACHE]]]]
//
// DIR holds the config.json of a model; its weights are random. CACHE is a value of
// --kv-cache-dtype. Both prompts are read once. Then samples of the two alternate, each resumed
// from the cache, so that other load on the machine affects both alike.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "banyan/engine.h"
#include "engine/work.h"
#include "samples.h"

namespace banyan {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::array<int64_t, 2> kPrompts = {1024, 32768};
constexpr int64_t kSteps = 32;  // timed steps, after the first token

[[noreturn]] void fail(const Error& error) {
  fmt::print(stderr, "context_bench: {}\n", error.message);
  std::exit(1);
}

// Seconds of a decode step.
double step_s(Engine& engine, const std::vector<TokenId>& prompt) {
  Clock::time_point first, last;
  int64_t tokens = 0;
  auto id = engine.submit(
      {.prompt = prompt, .sampling = {.temperature = 0}, .options = {.max_new_tokens = kSteps + 1}},
      [&](const TokenEvent& event) {
        if (!event.has_token) return;
        last = Clock::now();
        if (tokens++ == 0) first = last;
      });
  if (!id) fail(id.error());
  while (engine.step()) {
  }
  return std::chrono::duration<double>(last - first).count() / static_cast<double>(tokens - 1);
}

int run(const EngineConfig& config, int samples) {
  auto engine = Engine::load(config);
  if (!engine) fail(engine.error());
  const EngineInfo& info = (*engine)->info();
  std::array<std::vector<TokenId>, 2> prompts;
  std::array<std::vector<double>, 2> times;
  for (size_t i = 0; i < prompts.size(); ++i) {
    prompts[i] = random_tokens(kPrompts[i], info.vocabulary);
    auto begin = Clock::now();
    step_s(**engine, prompts[i]);
    fmt::print("{:6} tokens are read in {:.1f} s\n", kPrompts[i],
               std::chrono::duration<double>(Clock::now() - begin).count());
  }
  for (int sample = 0; sample < samples; ++sample) {
    for (size_t i = 0; i < prompts.size(); ++i) {
      times[i].push_back(step_s(**engine, prompts[i]));
    }
  }
  std::array<double, 2> bytes = {}, time = {median(times[0]), median(times[1])};
  for (size_t i = 0; i < prompts.size(); ++i) {
    Work work = decode_work(info, 1, static_cast<double>(kPrompts[i]) + kSteps / 2.0);
    bytes[i] = work.bytes;
    fmt::print("after {:6} tokens: {:7.2f} ms, {:7.1f} MB, {:6.2f} GFLOP, {:5.1f} GB/s\n",
               kPrompts[i], time[i] * 1e3, bytes[i] / 1e6, work.all_operations() / 1e9,
               bytes[i] / time[i] / 1e9);
  }
  std::vector<double> ratios;
  for (size_t i = 0; i < times[0].size(); ++i) ratios.push_back(times[1][i] / times[0][i]);
  fmt::print("time {:.3f} times, bytes {:.3f} times: {:.3f} of the bytes' ratio\n", median(ratios),
             bytes[1] / bytes[0], median(ratios) / (bytes[1] / bytes[0]));
  return 0;
}

}  // namespace
}  // namespace banyan

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr,
               "usage: context_bench DIR QUANTIZATION [SAMPLES [KERNELS [MLA_PREFILL "
               "[KV_CACHE_DTYPE]]]]\n");
    return 2;
  }
  banyan::EngineConfig config = {.model_path = argv[1],
                                 .kernels = argc > 4 ? argv[4] : "auto",
                                 .load_format = "dummy",
                                 .quantization = argv[2],
                                 .mla_prefill = argc > 5 ? argv[5] : "absorbed",
                                 .kv_cache_dtype = argc > 6 ? argv[6] : "auto",
                                 .total_tokens_max = 65536,
                                 .running_max = 1};
  return banyan::run(config, argc > 3 ? std::max(1, std::atoi(argv[3])) : 15);
}
