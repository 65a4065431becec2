// The main property: a request gets the tokens and log-probabilities of the naive run (the same
// request alone, in one chunk, without any cached prefix), bit for bit. Other requests, chunks,
// pages, threads and order change nothing. After every step the invariants of the scheduler and the
// radix tree hold.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>

#include "base/random.h"
#include "engine/assemble.h"
#include "engine/schedule/scheduler.h"
#include "simulation/workload.h"
#include "support/drive.h"
#include "support/liar.h"
#include "support/models/hybrid_model.h"
#include "support/models/made_up_mixers.h"
#include "support/sanitized.h"
#include "support/tier/fake_store.h"
#include "support/value_or_abort.h"
#include "tier/layered_store.h"

namespace banyan::test::schedule_invariance_test {
namespace {

constexpr int64_t kShards = 4;
constexpr int64_t kSeedsByDefault = kSanitized ? 400 : 10000;
constexpr int kStepsMax = 20000;

int64_t number_from_environment(const char* name, int64_t fallback) {
  const char* text = std::getenv(name);
  return text == nullptr ? fallback : std::atoll(text);
}

std::unique_ptr<Engine> load(bool hybrid, const EngineConfig& config,
                             std::vector<NamedDrafter> drafters = {},
                             EngineAssembly::Storage storage = {}) {
  std::span<const Family> families = hybrid ? hybrid_families() : registered_families();
  return value_or_abort(
      EngineAssembly::load(config, families, {}, std::move(drafters), std::move(storage)));
}

FakeFaults random_faults(uint64_t seed, uint64_t i) {
  auto rate = [&] { return uniform(seed, ++i, 6) < 0.6 ? 0 : 0.3 * uniform(seed, ++i, 6); };
  return {.lie = rate(),
          .lose = rate(),
          .damage = rate(),
          .tear = rate(),
          .fail = rate(),
          .refuse = rate(),
          .delay_max = static_cast<int>(40 * rate())};
}

// What survives a restart of an engine: its own disk and, for every third seed, a store shared with
// others. For another third, another engine computes again what the disk has lost.
struct Kept {
  std::shared_ptr<FakeDisk> disk = std::make_shared<FakeDisk>();
  std::shared_ptr<FakeDisk> shared = std::make_shared<FakeDisk>();
};

// Stores that fail as the seed says, and are otherwise so fast that everything in them is worth
// loading.
EngineAssembly::Storage storage_on(const Kept& kept, uint64_t seed) {
  auto store = std::make_unique<FakeStore>(kept.disk, random_faults(seed, 0), seed);
  auto now_ns = [store = store.get()] { return store->now_ns(); };
  EngineAssembly::Storage storage{
      .store = std::move(store), .now_ns = now_ns, .load = LoadCost(0, 1e18)};
  if (seed / 2 % 3 == 0) {
    kept.shared->any_order = true;
    auto shared = std::make_unique<FakeStore>(kept.shared, random_faults(seed, 100), seed + 7);
    storage.store = make_layered_store(std::move(storage.store), std::move(shared));
  } else if (seed / 2 % 3 == 1) {
    auto prefill = std::make_unique<FakeStore>(kept.disk, random_faults(seed, 100), seed + 7);
    prefill->computing = true;
    storage.store = make_layered_store(std::move(storage.store), std::move(prefill));
  }
  return storage;
}

// The engine of naive runs on the same model and kernel table: everything fits at once.
Engine& naive_engine(const Workload& workload) {
  const EngineConfig& config = workload.config;
  static std::map<std::string, std::unique_ptr<Engine>> engines;
  std::unique_ptr<Engine>& engine =
      engines[config.model_path + config.kernels + config.mla_prefill + config.kv_cache_dtype +
              config.load_format + " " + std::to_string(config.moba_block_tokens) + " " +
              std::to_string(config.moba_top_k) + " " + std::to_string(config.tp_size) + " " +
              std::to_string(config.adapters.size())];
  if (engine == nullptr) {
    engine = load(workload.hybrid, {.model_path = config.model_path,
                                    .kernels = config.kernels,
                                    .load_format = config.load_format,
                                    .threads = 1,
                                    .tp_size = config.tp_size,
                                    .mla_prefill = config.mla_prefill,
                                    .moba_block_tokens = config.moba_block_tokens,
                                    .moba_top_k = config.moba_top_k,
                                    .kv_cache_dtype = config.kv_cache_dtype,
                                    .adapters = config.adapters,
                                    .context_length_tokens = config.context_length_tokens,
                                    .total_tokens_max = 512,
                                    .running_max = 1,
                                    .radix_cache = false,
                                    .jump_forward = false});
  }
  return *engine;
}

// What the workloads exercised: a simulation that never finds a cached prefix proves nothing.
struct Coverage {
  int64_t cached_tokens = 0, cached_recurrent_tokens = 0, cached_expanded_tokens = 0;
  int64_t cached_quantised_tokens = 0;
  int64_t retracted = 0, steps = 0;
  int64_t accepted_drafts = 0, rejected_drafts = 0;
  int64_t accepted_recurrent_drafts = 0, rejected_recurrent_drafts = 0;
  int64_t accepted_lies = 0, rejected_lies = 0, accepted_lookups = 0, rejected_lookups = 0;
  int64_t accepted_model_drafts = 0, rejected_model_drafts = 0;
  int64_t layer_drafts = 0, head_drafts = 0;
  int64_t branches = 0, followed_branches = 0;
  int64_t overlapped_steps = 0, following_steps = 0, divided_steps = 0;
  int64_t adapted_tokens = 0;  // found in the cache in runs with adapters
  int64_t restored_tokens = 0, restored_recurrent_tokens = 0, restored_windowed_tokens = 0;
  int64_t restored_sparse_tokens = 0, restored_shared_tokens = 0, restored_device_tokens = 0;
  int64_t prefilled_tokens = 0, evicted_unwritten = 0;
  std::array<int64_t, CacheStorageStats::kMissNames.size()> misses = {};
};

bool is_sparse(const EngineConfig& config) {
  auto ends_with = [&](std::string_view name) { return config.model_path.ends_with(name); };
  return config.moba_block_tokens > 0 || ends_with("deepseek-v32") || ends_with("glm-moe-dsa");
}

class Simulation {
 public:
  Simulation(const Workload& workload, Coverage& coverage, EngineAssembly::Storage storage = {})
      : workload_(workload), coverage_(coverage) {
    guests_.resize(workload.arrivals.size());
    std::vector<NamedDrafter> drafters;
    if (workload.liar) drafters.push_back({"liar", make_liar()});
    engine_ = load(workload.hybrid, workload.config, std::move(drafters), std::move(storage));
  }

  void run() {
    for (int step = 0; step < kStepsMax; ++step) {
      submit_due(step);
      for (size_t i = 0; i < guests_.size(); ++i) {
        if (workload_.arrivals[i].cancel_step == step) cancel(i);
      }
      hold_and_release(step);
      flush_and_clear(step);
      std::vector<size_t> doomed = cancelled_;
      bool worked = engine_->step();
      for (size_t i : doomed) ASSERT_EQ(guests_[i].heard.ends, 1) << "cancelled, yet not ended";
      check_units();
      if (testing::Test::HasFatalFailure()) return;
      if (!worked && std::ranges::all_of(guests_, [](auto& g) { return g.heard.ends == 1; })) {
        count();
        return compare();
      }
    }
    FAIL() << "still running after " << kStepsMax << " steps";
  }

 private:
  struct Guest {
    GenerateRequest request;  // as it is submitted, without its constraint
    Heard heard;
    std::optional<Heard> naive;
    bool submitted = false;
    bool due_now = false;  // its predecessor has ended
    bool held = false;
    SequenceId id = 0;
  };

  const Arrival& arrival(size_t i) const { return workload_.arrivals[i]; }

  std::unique_ptr<Drafter> make_liar() {
    return std::make_unique<Liar>(workload_.arrivals.size(), kWorkloadVocabulary,
                                  [this](const Sequence& s) {
                                    auto guest = std::ranges::find(guests_, s.id, &Guest::id);
                                    CHECK(guest != guests_.end());
                                    return naive(guest - guests_.begin()).output_ids();
                                  });
  }

  // The naive run of a submitted request.
  const Heard& naive(size_t i) {
    Guest& guest = guests_[i];
    if (guest.naive) return *guest.naive;
    GenerateRequest request = guest.request;
    request.constraint = arrival(i).fresh_constraint();
    request.options.priority = 0;
    request.options.prediction_token_ids.clear();
    guest.naive = run_alone(naive_engine(workload_), request);
    return *guest.naive;
  }

  void submit_due(int step) {
    for (size_t i = 0; i < guests_.size(); ++i) {
      bool due = arrival(i).after >= 0 ? guests_[i].due_now : step >= arrival(i).step;
      if (due && !guests_[i].submitted) submit(i);
    }
  }

  // A request may only be refused because the queue is full or because it can never fit the pages.
  void submit(size_t i) {
    Guest& guest = guests_[i];
    if (guest.request.prompt.empty()) guest.request = request_of(i);
    GenerateRequest request = guest.request;
    request.constraint = arrival(i).fresh_constraint();
    auto id = engine_->submit(std::move(request), [this, i](const TokenEvent& e) { hear(i, e); });
    if (id) {
      guest.submitted = true;
      guest.id = *id;
      order_.push_back(i);
      return;
    }
    bool fits = pages_of(i) <= engine_->stats().pages_total;
    ASSERT_EQ(id.error().code, fits ? ErrorCode::kExhausted : ErrorCode::kInvalidArgument)
        << id.error().message;
    if (fits) return;  // tried again before the next step
    guest.submitted = true;
    guest.heard.ends = 1;
    guest.heard.finish = FinishReason::kCancelled;  // compared as one that was never heard of
    for (size_t next = 0; next < guests_.size(); ++next) {
      if (arrival(next).after == static_cast<int>(i)) guests_[next].due_now = true;
    }
  }

  void hear(size_t i, const TokenEvent& event) {
    Guest& guest = guests_[i];
    guest.heard.hear(event);
    EXPECT_EQ(event.sequence, guest.id);
    if (static_cast<int>(guest.heard.output.size()) == arrival(i).cancel_after_tokens) cancel(i);
    if (event.finish == FinishReason::kNone) return;
    for (size_t next = 0; next < guests_.size(); ++next) {
      if (arrival(next).after != static_cast<int>(i)) continue;
      guests_[next].due_now = true;
      submit(next);
    }
  }

  // Holds may name prefixes that are not computed yet, and releases may name unknown ones.
  void hold_and_release(int step) {
    for (size_t i = 0; i < guests_.size(); ++i) {
      Guest& guest = guests_[i];
      if (arrival(i).holds && guest.heard.ends == 1 && !guest.held) {
        guest.held = true;
        std::vector<TokenId> tokens = guest.request.prompt;
        for (TokenId token : guest.heard.output_ids()) tokens.push_back(token);
        engine_->hold(i, std::move(tokens));
      }
      if (arrival(i).release_step == step) engine_->release(i);
    }
  }

  void flush_and_clear(int step) {
    auto due = [step](int every) { return every > 0 && step % every == every - 1; };
    if (due(workload_.flush_every)) engine_->flush_cache();
    if (due(workload_.clear_every)) engine_->clear_cache_storage();
  }

  void cancel(size_t i) {
    if (!guests_[i].submitted || guests_[i].heard.ends == 1) return;
    engine_->cancel(guests_[i].id);
    cancelled_.push_back(i);
  }

  // Its own prompt, or one that continues its conversation, as far as the context allows.
  GenerateRequest request_of(size_t i) const {
    GenerateRequest request = arrival(i).request;
    if (!arrival(i).continues) return request;
    const Guest& before = guests_[static_cast<size_t>(arrival(i).after)];
    std::vector<TokenId> prompt = before.request.prompt;
    for (TokenId token : before.heard.output_ids()) prompt.push_back(token);
    prompt.insert(prompt.end(), request.prompt.begin(), request.prompt.end());
    prompt.resize(std::min(prompt.size(), size_t{80}));
    request.prompt = std::move(prompt);
    if (request.options.prompt_logprobs_begin) {
      request.options.prompt_logprobs_begin = std::min(*request.options.prompt_logprobs_begin,
                                                       static_cast<int64_t>(request.prompt.size()));
    }
    return request;
  }

  int64_t pages_of(size_t i) const {
    const GenerateRequest& request = guests_[i].request;
    auto prompt = static_cast<int64_t>(request.prompt.size());
    int64_t tokens =
        std::min(prompt + request.options.max_new_tokens, engine_->info().context_length_tokens);
    int64_t page = workload_.config.page_size_tokens;
    return (tokens + page - 1) / page;
  }

  void check_units() {
    EngineAssembly::scheduler(*engine_).check();
    int64_t alive = 0;
    for (size_t i : order_) alive += guests_[i].heard.ends == 0;
    EngineStats stats = engine_->stats();
    ASSERT_EQ(stats.running + stats.queued, alive);
    ASSERT_LE(stats.running, workload_.config.running_max);
  }

  void compare() {
    for (size_t i : order_) {
      SCOPED_TRACE(testing::Message() << "request " << i);
      const Heard& heard = guests_[i].heard;
      Heard naive = this->naive(i);
      if (heard.finish == FinishReason::kCancelled) {  // heard a beginning
        ASSERT_LE(heard.prompt.size(), naive.prompt.size());
        ASSERT_LE(heard.output.size(), naive.output.size());
        naive.prompt.resize(heard.prompt.size());
        naive.output.resize(heard.output.size());
      } else {
        EXPECT_EQ(heard.finish, naive.finish);
        EXPECT_EQ(heard.matched_stop, naive.matched_stop);
      }
      EXPECT_TRUE(same(heard.prompt, naive.prompt));
      EXPECT_TRUE(same(heard.output, naive.output));
    }
  }

  static bool same(const std::vector<Heard::Token>& a, const std::vector<Heard::Token>& b) {
    auto same_top = [](const TokenLogprob& x, const TokenLogprob& y) {
      return x.token == y.token && same_bits({&x.logprob, 1}, {&y.logprob, 1});
    };
    return std::ranges::equal(a, b, [&](const Heard::Token& x, const Heard::Token& y) {
      return x.position == y.position && x.token == y.token &&
             same_bits({&x.logprob, 1}, {&y.logprob, 1}) &&
             std::ranges::equal(x.top, y.top, same_top) &&
             std::ranges::equal(x.chosen, y.chosen, same_top);
    });
  }

  void count() {
    EngineStats stats = engine_->stats();
    coverage_.cached_tokens += stats.cached_tokens;
    int64_t rejected = stats.draft_tokens - stats.accepted_draft_tokens;
    coverage_.accepted_drafts += stats.accepted_draft_tokens;
    coverage_.rejected_drafts += rejected;
    for (const DrafterStats& drafter : stats.drafters) {
      int64_t wrong = drafter.draft_tokens - drafter.accepted_tokens;
      if (drafter.name == "liar") {
        coverage_.accepted_lies += drafter.accepted_tokens;
        coverage_.rejected_lies += wrong;
        coverage_.branches += drafter.branches;
        coverage_.followed_branches += drafter.followed_branches;
      } else if (drafter.name == "draft") {
        coverage_.accepted_model_drafts += drafter.accepted_tokens;
        coverage_.rejected_model_drafts += wrong;
      } else if (drafter.name == "mtp") {
        coverage_.layer_drafts += drafter.draft_tokens;
      } else if (drafter.name == "eagle3") {
        coverage_.head_drafts += drafter.draft_tokens;
      } else if (drafter.name != "forced") {
        coverage_.accepted_lookups += drafter.accepted_tokens;
        coverage_.rejected_lookups += wrong;
      }
    }
    if (engine_->info().slots > 0) {
      coverage_.cached_recurrent_tokens += stats.cached_tokens;
      coverage_.accepted_recurrent_drafts += stats.accepted_draft_tokens;
      coverage_.rejected_recurrent_drafts += rejected;
    }
    if (workload_.config.mla_prefill == "expanded") {
      coverage_.cached_expanded_tokens += stats.cached_tokens;
    }
    if (workload_.config.kv_cache_dtype != "auto") {
      coverage_.cached_quantised_tokens += stats.cached_tokens;
    }
    count_storage(stats.storage);
    coverage_.retracted += stats.retracted;
    coverage_.steps += stats.steps;
    int64_t ahead = EngineAssembly::overlapped_steps(*engine_);
    (workload_.config.scheduler_steps > 1 ? coverage_.following_steps
                                          : coverage_.overlapped_steps) += ahead;
    if (workload_.config.tp_size > 1) coverage_.divided_steps += stats.steps;
    if (!workload_.config.adapters.empty()) coverage_.adapted_tokens += stats.cached_tokens;
  }

  void count_storage(const CacheStorageStats& storage) {
    int64_t restored = storage.restored_tokens;
    coverage_.restored_tokens += restored;
    bool device = has_device_memory(workload_.config);
    if (device) coverage_.restored_device_tokens += storage.layers[0].restored_tokens;
    bool prefills = storage.layers[1].backend == "prefill";
    int64_t& by_second = prefills ? coverage_.prefilled_tokens : coverage_.restored_shared_tokens;
    if (!device) by_second += storage.layers[1].restored_tokens;
    if (is_sparse(workload_.config)) coverage_.restored_sparse_tokens += restored;
    if (engine_->info().slots > 0) coverage_.restored_recurrent_tokens += restored;
    if (engine_->info().window_tokens > 0) coverage_.restored_windowed_tokens += restored;
    coverage_.evicted_unwritten += storage.evicted_unwritten;
    for (size_t i = 0; i < storage.misses.size(); ++i) coverage_.misses[i] += storage.misses[i];
  }

  const Workload& workload_;
  Coverage& coverage_;
  std::unique_ptr<Engine> engine_;
  std::vector<Guest> guests_;
  std::vector<size_t> order_;  // of submission
  std::vector<size_t> cancelled_;
};

// Twice on the same store, with a restart between.
void run_with_storage(uint64_t seed, Workload& workload, Coverage& coverage) {
  add_storage(seed, workload);
  Kept kept;
  for (uint64_t life = 0; life < 2 && !testing::Test::HasFailure(); ++life) {
    // The second one may be on another machine.
    if (life == 1 && seed % 6 == 0) kept.disk = std::make_shared<FakeDisk>();
    Simulation(workload, coverage, storage_on(kept, 2 * seed + life)).run();
  }
}

enum class Kind { kFamilies, kMadeUp, kStorage };

void run_seed(int64_t seed, Kind kind, Coverage& coverage) {
  bool made_up = kind == Kind::kMadeUp || (kind == Kind::kStorage && seed % 16 == 5);
  Workload workload = random_workload(static_cast<uint64_t>(seed), made_up);
  const EngineConfig& c = workload.config;
  SCOPED_TRACE(testing::Message() << "replay with BANYAN_SEED=" << seed << "; " << c.model_path
                                  << ", " << c.kernels << ", MLA " << c.mla_prefill << ", cache of "
                                  << c.kv_cache_dtype << ", blocks of " << c.moba_block_tokens
                                  << " x " << c.moba_top_k << ", " << c.threads
                                  << " threads, pages of " << c.page_size_tokens << ", "
                                  << c.total_tokens_max << " tokens, " << c.running_max
                                  << " running, chunks of " << c.chunked_prefill_tokens << ", "
                                  << c.schedule_policy << (c.radix_cache ? "" : ", no cache")
                                  << (c.overlap_schedule.value_or(false) ? ", overlap" : "") << ", "
                                  << c.scheduler_steps << " steps in flight"
                                  << (workload.liar ? ", a drafter that lies" : "")
                                  << fmt::format("{}", fmt::join(c.drafters, ", ")) << " "
                                  << c.draft_model_path << (workload.hybrid ? ", hybrid" : ""));
  if (kind == Kind::kStorage) {
    run_with_storage(static_cast<uint64_t>(seed), workload, coverage);
  } else {
    Simulation(workload, coverage).run();
  }
}

// Seeds are divided among as many tests as can run in parallel.
class ScheduleInvariance : public testing::TestWithParam<int64_t> {};

// Returns how many seeds of the shard were run, of `by_default` in all shards; 0 when one is
// replayed.
int64_t run_shard(int64_t shard, int64_t by_default, Kind kind, Coverage& coverage) {
  int64_t only = number_from_environment("BANYAN_SEED", -1);
  if (only >= 0) {
    if (only % kShards == shard) run_seed(only, kind, coverage);
    return 0;
  }
  int64_t end = number_from_environment("BANYAN_SEEDS", by_default), seeds = 0;
  for (int64_t seed = shard; seed < end && !testing::Test::HasFailure(); seed += kShards) {
    run_seed(seed, kind, coverage);
    ++seeds;
  }
  return seeds;
}

TEST_P(ScheduleInvariance, EveryRequestGetsItsNaiveRun) {
  Coverage coverage;
  int64_t seeds = run_shard(GetParam(), kSeedsByDefault, Kind::kFamilies, coverage);
  if (seeds == 0) return;
  int64_t many = seeds < 1'000 ? seeds / 10 : seeds;  // a few seeds may be alike
  EXPECT_GT(coverage.cached_tokens, 10 * many);
  EXPECT_GT(coverage.cached_recurrent_tokens, many);
  EXPECT_GT(coverage.cached_expanded_tokens, many);
  EXPECT_GT(coverage.cached_quantised_tokens, many);
  EXPECT_GT(coverage.retracted, 0);
  EXPECT_GT(coverage.accepted_drafts, many);
  EXPECT_GT(coverage.rejected_drafts, many);
  EXPECT_GT(coverage.accepted_recurrent_drafts, many / 4);
  EXPECT_GT(coverage.rejected_recurrent_drafts, many / 4);
  EXPECT_GT(coverage.accepted_lies, 3 * many);
  EXPECT_GT(coverage.rejected_lies, many);
  EXPECT_GT(coverage.accepted_lookups, many);
  EXPECT_GT(coverage.rejected_lookups, many / 2);
  EXPECT_GT(coverage.accepted_model_drafts, many);
  EXPECT_GT(coverage.rejected_model_drafts, many / 8);
  EXPECT_GT(coverage.layer_drafts, many / 8);
  EXPECT_GT(coverage.head_drafts, many / 8);
  EXPECT_GT(coverage.branches, many / 4);
  EXPECT_GT(coverage.followed_branches, many / 16);
  EXPECT_GT(coverage.overlapped_steps, many / 2);
  EXPECT_GE(coverage.following_steps, many / 32);  // a few seeds may have none
  EXPECT_GE(coverage.divided_steps, many / 32);
  EXPECT_GE(coverage.adapted_tokens, many / 32);
  RecordProperty("steps", coverage.steps);
}

// A class of units is data: two windows, rows of several tokens, advisory states and states that
// are never shared keep the property and the invariants, without any code for them in the engine.
TEST_P(ScheduleInvariance, HoldsForClassesOfStatesThatNoFamilyHas) {
  Coverage coverage;
  Notes::missing_pages = Notes::missing_slots = Notes::replayed = 0;
  int64_t seeds = run_shard(GetParam(), kSeedsByDefault / 20, Kind::kMadeUp, coverage);
  if (seeds < 100) return;  // too few to have met everything
  EXPECT_GT(coverage.cached_tokens, 10 * seeds);
  EXPECT_GT(coverage.cached_recurrent_tokens, seeds);
  EXPECT_GT(coverage.rejected_drafts, seeds);
  EXPECT_GT(Notes::missing_pages, 0);
  EXPECT_GT(Notes::missing_slots, 0);
  EXPECT_GT(Notes::replayed, 0);
}

// A store that fails, delays, reorders, loses, tears and flips bits changes only how much is
// computed; so does a restart with its contents. By default 5% of 10,000 seeds; `scripts/test
// --full` runs more.
TEST_P(ScheduleInvariance, HoldsOverAStoreThatFails) {
  Coverage coverage;
  int64_t seeds = run_shard(GetParam(), kSeedsByDefault / 20, Kind::kStorage, coverage);
  if (seeds < 100) return;
  EXPECT_GT(coverage.restored_tokens, 3 * seeds);
  EXPECT_GT(coverage.restored_recurrent_tokens, seeds / 2);
  EXPECT_GT(coverage.restored_windowed_tokens, seeds / 2);
  EXPECT_GT(coverage.restored_sparse_tokens, seeds / 8);
  EXPECT_GT(coverage.restored_shared_tokens, seeds / 16);
  EXPECT_GT(coverage.prefilled_tokens, seeds / 16);
  EXPECT_GT(coverage.restored_device_tokens, seeds / 16);
  EXPECT_GT(coverage.evicted_unwritten, 0);
  for (size_t i = 0; i < coverage.misses.size(); ++i) {
    bool happens = i != CacheStorageStats::kIdentity && i != CacheStorageStats::kCheaperToCompute;
    EXPECT_EQ(coverage.misses[i] > 0, happens) << CacheStorageStats::kMissNames[i];
  }
}

INSTANTIATE_TEST_SUITE_P(Shards, ScheduleInvariance, testing::Range(int64_t{0}, kShards));

}  // namespace
}  // namespace banyan::test::schedule_invariance_test
