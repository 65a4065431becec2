// What a cached prefix saves: the time to the first token of a prompt whose beginning is cached,
// compared with that of the rest alone, and of several simultaneous requests with a common
// beginning.
//
//   cmake --preset release -DBANYAN_BENCH=ON
//   cmake --build --preset release --target prefix_bench
//
//   build/release/bench/prefix_bench DIR [RUNS]
//
// DIR holds the config.json of a model; its weights are random.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <vector>

#include "banyan/engine.h"
#include "samples.h"

namespace banyan {
namespace {

constexpr int64_t kPrefix = 1024, kSuffix = 256;

std::vector<TokenId> joined(std::vector<TokenId> a, const std::vector<TokenId>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Seconds until each of the prompts, submitted together, has its first and only token.
double time_of(Engine& engine, const std::vector<std::vector<TokenId>>& prompts) {
  auto started = std::chrono::steady_clock::now();
  for (const std::vector<TokenId>& prompt : prompts) {
    auto id = engine.submit(
        {.prompt = prompt, .sampling = {.temperature = 0}, .options = {.max_new_tokens = 1}},
        [](const TokenEvent&) {});
    if (!id) {
      fmt::print(stderr, "prefix_bench: {}\n", id.error().message);
      std::exit(1);
    }
  }
  while (engine.step()) {
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
}

int run(const std::string& folder, int runs) {
  auto engine = Engine::load({.model_path = folder, .load_format = "dummy"});
  if (!engine) {
    fmt::print(stderr, "prefix_bench: {}\n", engine.error().message);
    return 1;
  }
  const EngineInfo& info = (*engine)->info();
  auto fresh = [&](int64_t count) { return random_tokens(count, info.vocabulary); };
  std::vector<double> suffix, warm, whole, four;
  time_of(**engine, {fresh(64)});
  for (int i = 0; i < runs; ++i) {
    std::vector<TokenId> prefix = fresh(kPrefix);
    suffix.push_back(time_of(**engine, {fresh(kSuffix)}));
    whole.push_back(time_of(**engine, {joined(prefix, fresh(kSuffix))}));
    warm.push_back(time_of(**engine, {joined(prefix, fresh(kSuffix))}));
    prefix = fresh(kPrefix);
    std::vector<std::vector<TokenId>> prompts;
    for (int k = 0; k < 4; ++k) prompts.push_back(joined(prefix, fresh(kSuffix)));
    four.push_back(time_of(**engine, prompts));
  }
  // A token costs two flops a weight, and attention to every token before it; the output head is
  // for the last one alone.
  double head = 2 * static_cast<double>(info.vocabulary * info.hidden);
  double token = 2 * static_cast<double>(info.parameters_active) - head;
  auto attention = [&](int64_t begin, int64_t end) {
    return static_cast<double>(info.attention_flops_per_key) *
           (static_cast<double>(end * (end + 1) - begin * (begin + 1)) / 2);
  };
  double floor = (head + kSuffix * token + attention(kPrefix, kPrefix + kSuffix)) /
                 (head + kSuffix * token + attention(0, kSuffix));
  double alone = median(suffix);
  fmt::print("{} tokens alone, cold          {:8.3f} s\n", kSuffix, alone);
  fmt::print("{} + {} tokens, cold         {:8.3f} s\n", kPrefix, kSuffix, median(whole));
  fmt::print("{} cached + {} tokens        {:8.3f} s   {:.2f} of the {} alone (flops: {:.2f})\n",
             kPrefix, kSuffix, median(warm), median(warm) / alone, kSuffix, floor);
  fmt::print("four such at once, cold         {:8.3f} s   {:.2f} of one prefix and four suffixes\n",
             median(four), median(four) / (median(whole) + 3 * median(warm)));
  return 0;
}

}  // namespace
}  // namespace banyan

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: prefix_bench DIR [RUNS]\n");
    return 2;
  }
  return banyan::run(argv[1], argc > 2 ? std::max(1, std::atoi(argv[2])) : 5);
}
