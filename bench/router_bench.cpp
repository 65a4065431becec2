// The time that a router takes to choose a worker: prompts of 32k tokens, 128 workers with 50,000
// pages each, without hashing.
//
//   cmake --preset release -DBANYAN_BENCH=ON
//   cmake --build --preset release --target router_bench
//
//   build/release/bench/router_bench [WORKERS [PAGES_OF_A_WORKER]]
//
// Prompts share a beginning of 32 pages that all workers have. Half of the other pages are on one
// worker, and a quarter of the prompts are on every worker as a whole.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/percentile.h"
#include "base/random.h"
#include "router/fleet_view.h"

namespace banyan {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kPage = 64, kPromptPages = 512, kCommonPages = 32, kSharedPrompts = 16;
constexpr int kDecisions = 20'000;

// Keys as random as digests are.
PageKey key_of(uint64_t prompt, uint64_t page) {
  PageKey key;
  auto words = philox(page < kCommonPages ? 0 : prompt, page, 7);
  std::memcpy(key.bytes.data(), words.data(), key.bytes.size());
  return key;
}

std::vector<PageKey> prompt_of(uint64_t prompt) {
  std::vector<PageKey> pages;
  for (uint64_t page = 0; page < kPromptPages; ++page) pages.push_back(key_of(prompt, page));
  return pages;
}

void add_worker(FleetView& view, int worker, int pages) {
  view.add(worker);
  view.apply(worker, KvHello{.epoch = 1}, 0);
  KvSnapshotPart part{.sequence = 0, .first = true, .last = true};
  auto hold = [&](uint64_t prompt, uint64_t count) {
    for (uint64_t page = 0; page < count; ++page) {
      part.units.push_back({.page = key_of(prompt, page)});
    }
  };
  for (uint64_t p = 1; p <= kSharedPrompts; ++p) hold(p, kPromptPages);
  for (uint64_t p = 0; std::ssize(part.units) < pages; ++p) {
    hold((static_cast<uint64_t>(worker) + 1) * 1'000'000 + p, kPromptPages / 2);
  }
  view.apply(worker, part, 0);
  view.apply(worker,
             LoadReport{.waiting_tokens = worker * 100,
                        .pages_free = 1 << 20,
                        .pages_total = 1 << 20,
                        .prefill_tokens_s = 8000},
             0);
}

int run(int workers, int pages) {
  FleetView view({.classes = {.page_size_tokens = kPage}, .workers_max = workers});
  for (int w = 0; w < workers; ++w) add_worker(view, w, pages);
  std::vector<double> times_us;
  int64_t cached = 0;
  for (uint64_t i = 0; i < kDecisions; ++i) {
    auto worker = static_cast<uint64_t>(uniform(i, 0, 1) * workers) + 1;
    uint64_t prompt = i % 4 == 0 ? 1 + i / 4 % kSharedPrompts : worker * 1'000'000 + i % 64;
    std::vector<PageKey> keys = prompt_of(prompt);
    RouteRequest request{
        .pages = keys, .prompt_tokens = kPromptPages * kPage + 1, .output_tokens = 300, .id = i};
    Clock::time_point begin = Clock::now();
    RouteChoice choice = view.choose(request, 0);
    times_us.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
    cached += choice.cached_tokens;
  }
  std::ranges::sort(times_us);
  fmt::print("{} workers, {} entries, {:.0f} MB; of {} prompts {:.1f}% is cached\n", workers,
             view.tree().entries(), static_cast<double>(view.tree().bytes()) / 1e6, kDecisions,
             100.0 * static_cast<double>(cached) / (1.0 * kDecisions * kPromptPages * kPage));
  fmt::print("a decision: p50 {:.1f} us, p99 {:.1f} us, most {:.1f} us\n",
             percentile(times_us, 0.5), percentile(times_us, 0.99), times_us.back());
  return 0;
}

}  // namespace
}  // namespace banyan

int main(int argc, char** argv) {
  int workers = argc > 1 ? std::atoi(argv[1]) : 128, pages = argc > 2 ? std::atoi(argv[2]) : 50'000;
  if (argc > 3 || workers < 1 || pages < 1) {
    fmt::print(stderr, "usage: router_bench [WORKERS [PAGES_OF_A_WORKER]]\n");
    return 2;
  }
  return banyan::run(workers, pages);
}
