// Memory is taken when a request arrives; a step in which no request arrives or ends takes none.
//
// This program replaces operator new by one that counts, which is why it is a program of its own.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

#include "base/signed.h"
#include "engine/assemble.h"
#include "engine/sequence.h"
#include "kernels/select.h"
#include "support/drive.h"
#include "support/models/adapters.h"
#include "support/models/grown_checkpoint.h"
#include "support/shared.h"
#include "support/tier/fake_store.h"
#include "support/value_or_abort.h"

namespace {

std::atomic<bool> counting = false;
std::atomic<int64_t> allocations = 0;

void* counted(size_t bytes, size_t alignment) {
  if (counting.load(std::memory_order_relaxed)) allocations.fetch_add(1);
  void* data = alignment <= alignof(std::max_align_t)
                   ? std::malloc(bytes == 0 ? 1 : bytes)
                   : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (data == nullptr) std::abort();
  return data;
}

}  // namespace

// The other forms of new and delete call these. If only one side is inlined, g++ reports a
// mismatched pair.
[[gnu::noinline]] void* operator new(size_t bytes) {
  return counted(bytes, 1);
}
[[gnu::noinline]] void* operator new(size_t bytes, std::align_val_t alignment) {
  return counted(bytes, static_cast<size_t>(alignment));
}
[[gnu::noinline]] void operator delete(void* data) noexcept {
  std::free(data);
}
[[gnu::noinline]] void operator delete(void* data, size_t) noexcept {
  std::free(data);
}
[[gnu::noinline]] void operator delete(void* data, std::align_val_t) noexcept {
  std::free(data);
}
[[gnu::noinline]] void operator delete(void* data, size_t, std::align_val_t) noexcept {
  std::free(data);
}

namespace banyan::test::decode_test {
namespace {

constexpr int kWarmSteps = 60;  // the prompts are read, and every buffer has seen its largest batch
constexpr int kCountedSteps = 100;

// Accepts without remembering, so that it allocates nothing itself.
class EvenTokens final : public TokenConstraint {
 public:
  void fill_mask(std::span<uint32_t> mask) override { std::ranges::fill(mask, 0x55555555u); }
  void accept(TokenId) override {}
  std::span<const TokenId> draft_tokens() override { return {}; }
  void rollback(int) override {}
};

// Forces every token. Of eight tokens it proposes two, followed by a wrong one, so that six steps
// make eight tokens.
class Counts final : public TokenConstraint {
 public:
  void fill_mask(std::span<uint32_t> mask) override { mask[0] |= 2u << next_; }
  void accept(TokenId) override { next_ = (next_ + 1) % 8; }
  std::span<const TokenId> draft_tokens() override {
    return next_ == 0 ? std::span<const TokenId>(kDrafts) : std::span<const TokenId>();
  }
  void rollback(int tokens) override { next_ = (next_ + 8 * tokens - tokens) % 8; }

 private:
  static constexpr std::array<TokenId, 3> kDrafts = {1, 2, 30};
  int next_ = 0;
};

// One request with every kind of sampling.
std::vector<GenerateRequest> mixed_requests() {
  std::vector<GenerateRequest> requests(8);
  for (GenerateRequest& request : requests) {
    request.prompt = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13};
    request.options.max_new_tokens = 230;
  }
  requests[0].sampling.temperature = 0;
  requests[1].sampling = {.temperature = 0.8f, .top_p = 0.9f, .top_k = 50, .min_p = 0.01f};
  requests[2].sampling = {.frequency_penalty = 0.5f, .repetition_penalty = 1.1f};
  requests[3].sampling.logit_bias = {{3, 1.f}};
  requests[4].options.top_logprobs = 20;
  requests[5].constraint = std::make_shared<EvenTokens>();
  requests[6].constraint = std::make_shared<Counts>();
  requests[7].sampling = {.typical_p = 0.9f,
                          .xtc_probability = 0.5f,
                          .xtc_threshold = 0.01f,
                          .dry_multiplier = 0.5f,
                          .dry_allowed_length = 0,
                          .logit_bias = {{5, 1.f}}};
  return requests;
}

// With a store in memory if the config names one, and with a listener to its events if it has a
// digest.
std::unique_ptr<Engine> load_any(const EngineConfig& config) {
  if (config.state_digest) {
    std::unique_ptr<Engine> engine = load_engine(config);
    CHECK(EngineAssembly::announcer(*engine) != nullptr);
    return engine;
  }
  if (config.cache_storage.backend.empty()) return load_engine(config);
  auto store = std::make_unique<FakeStore>(std::make_shared<FakeDisk>(), FakeFaults(), 1);
  return value_or_abort(
      EngineAssembly::load(config, registered_families(), {}, {},
                           {.store = std::move(store), .now_ns = {}, .load = {}}));
}

int64_t allocations_of_decoding(const EngineConfig& config) {
  std::unique_ptr<Engine> engine = load_any(config);
  int64_t tokens = 0, ends = 0;
  size_t number = 0;
  for (GenerateRequest& request : mixed_requests()) {
    size_t choice = number++ % (config.adapters.size() + 1);  // 0: none
    if (choice > 0) request.options.adapter = config.adapters[choice - 1].name;
    auto id = engine->submit(std::move(request), [&](const TokenEvent& event) {
      tokens += event.has_token ? 1 : 0;
      ends += event.finish != FinishReason::kNone ? 1 : 0;
    });
    CHECK(id.has_value(), "{}", id.error().message);
  }
  for (int i = 0; i < kWarmSteps; ++i) engine->step();
  tokens = 0;
  allocations = 0;
  counting = true;
  for (int i = 0; i < kCountedSteps; ++i) engine->step();
  counting = false;
  EXPECT_GE(tokens, 7 * kCountedSteps + kCountedSteps / 6 * 8);
  EXPECT_LE(tokens, 7 * kCountedSteps + (kCountedSteps / 6 + 1) * 8);
  EXPECT_EQ(ends, 0);
  return allocations;
}

TEST(Allocation, IsCounted) {
  allocations = 0;
  counting = true;
  auto number = std::make_unique<int>(1);
  std::vector<std::string> texts(3, std::string(100, 'x'));
  counting = false;
  EXPECT_GE(allocations, 5);
}

TEST(Allocation, OverlappedDecodingTakesNoMemory) {
  std::unique_ptr<Engine> engine = load_engine({
      .model_path = source_path("tests/golden/models/qwen3-tied"),
      .threads = 1,
      .page_size_tokens = 4,
      .total_tokens_max = 2048,
      .overlap_schedule = true,
  });
  int64_t tokens = 0;
  std::vector<GenerateRequest> requests = mixed_requests();
  for (size_t i : {0, 1, 3, 4}) {  // those that need no token of the step before
    auto id = engine->submit(std::move(requests[i]),
                             [&](const TokenEvent& event) { tokens += event.has_token ? 1 : 0; });
    CHECK(id.has_value(), "{}", id.error().message);
  }
  for (int i = 0; i < kWarmSteps; ++i) engine->step();
  tokens = 0;
  allocations = 0;
  counting = true;
  for (int i = 0; i < kCountedSteps; ++i) engine->step();
  counting = false;
  EXPECT_EQ(tokens, 4 * kCountedSteps);
  EXPECT_EQ(allocations, 0);
}

TEST(Allocation, DecodingTakesNoMemory) {
  for (const std::string& kernels : available_kernels()) {
    for (const char* model :
         {"qwen3-tied", "mistral-window", "llama32-tied-sharded", "ling3-tiny"}) {
      for (int threads : {1, 2}) {
        EXPECT_EQ(allocations_of_decoding({.model_path = golden_folder(model),
                                           .kernels = kernels,
                                           .threads = threads,
                                           .page_size_tokens = 4,
                                           .total_tokens_max = 2048,
                                           .measure_drafts = false}),  // independent of the clock
                  0)
            << kernels << ", " << model << ", " << threads << " threads";
      }
    }
  }
}

// Proposes a token that is right and one that is not, and a branch with the right one.
class Tree final : public Drafter {
 public:
  explicit Tree(std::vector<TokenId> output) : output_(std::move(output)) {}

  void propose(std::span<DraftTask* const> tasks) override {
    for (DraftTask* task : tasks) {
      int64_t next = task->sequence->length() - task->sequence->prompt_tokens;
      if (next + 2 > std::ssize(output_)) continue;
      task->add(at(output_, next), 0.9f);
      task->add(at(output_, next + 1) + 1, 0.9f);
      DraftTask::Branch* branch = task->add_branch(1);
      if (branch == nullptr) continue;
      branch->tokens.push_back(at(output_, next + 1));
      branch->confidences.push_back(0.9f);
    }
  }

 private:
  const std::vector<TokenId> output_;
};

// An engine that answers `request`.
std::unique_ptr<Engine> answering(const EngineConfig& config, const GenerateRequest& request,
                                  const TokenSink& sink, std::vector<NamedDrafter> drafters) {
  auto engine =
      value_or_abort(EngineAssembly::load(config, registered_families(), {}, std::move(drafters)));
  CHECK(engine->submit(request, sink).has_value());
  return engine;
}

TEST(Allocation, DecodingWithDraftTreesTakesNoMemory) {
  EngineConfig config{.model_path = golden_folder("qwen3-tied"),
                      .threads = 1,
                      .page_size_tokens = 4,
                      .total_tokens_max = 2048,
                      .draft_topk = 2,
                      .measure_drafts = false};
  GenerateRequest request{.prompt = {1, 2, 3, 4, 5}, .sampling = {.temperature = 0}};
  request.options.max_new_tokens = 240;
  std::vector<TokenId> output;
  auto plain = answering(config, request,
                         [&](const TokenEvent& event) { output.push_back(event.token); }, {});
  while (plain->step()) continue;
  std::vector<NamedDrafter> drafters;
  drafters.push_back({"tree", std::make_unique<Tree>(output)});
  auto engine = answering(config, request, [](const TokenEvent&) {}, std::move(drafters));
  auto followed = [&] {
    EngineStats stats = engine->stats();
    return std::ranges::find(stats.drafters, "tree", &DrafterStats::name)->followed_branches;
  };
  for (int i = 0; i < kWarmSteps; ++i) engine->step();
  int64_t before = followed();
  allocations = 0;
  counting = true;
  for (int i = 0; i < kCountedSteps; ++i) engine->step();
  counting = false;
  EXPECT_EQ(allocations, 0);
  EXPECT_GT(followed(), before);
}

TEST(Allocation, DecodingOverAQuantisedCacheTakesNoMemory) {
  for (const std::string& kernels : available_kernels()) {
    for (const char* model : {"qwen3-tied", "mistral-window", "ling3-tiny"}) {
      for (const char* cache : {"int8", "fp8_e4m3"}) {
        EXPECT_EQ(allocations_of_decoding({.model_path = golden_folder(model),
                                           .kernels = kernels,
                                           .threads = 2,
                                           .kv_cache_dtype = cache,
                                           .page_size_tokens = 4,
                                           .total_tokens_max = 2048,
                                           .measure_drafts = false}),
                  0)
            << kernels << ", " << model << ", " << cache;
      }
    }
  }
}

TEST(Allocation, DecodingWithAdaptersTakesNoMemory) {
  for (const char* model : {"qwen3-tied", "qwen3-next"}) {
    TemporaryFolder folders[2];
    EXPECT_EQ(
        allocations_of_decoding({.model_path = golden_folder(model),
                                 .threads = 2,
                                 .adapters = {{"one", TestAdapter(model, 1).save(folders[0])},
                                              {"two", TestAdapter(model, 2).save(folders[1])}},
                                 .page_size_tokens = 4,
                                 .total_tokens_max = 2048,
                                 .measure_drafts = false}),
        0)
        << model;
  }
}

TEST(Allocation, DecodingWhileRoutersListenTakesNoMemory) {
  for (const char* model : {"qwen3-tied", "ling3-tiny"}) {
    EXPECT_EQ(allocations_of_decoding({.model_path = golden_folder(model),
                                       .threads = 1,
                                       .page_size_tokens = 4,
                                       .total_tokens_max = 2048,
                                       .reuse_generated_state = true,
                                       .state_digest = true,
                                       .measure_drafts = false}),
              0)
        << model;
  }
}

// The store is there and has nothing to do: no page is near eviction.
TEST(Allocation, DecodingBesideAStoreTakesNoMemory) {
  EngineConfig config{.model_path = golden_folder("qwen3-tied"),
                      .threads = 1,
                      .page_size_tokens = 4,
                      .total_tokens_max = 8192,
                      .measure_drafts = false};
  config.cache_storage.backend = "disk";
  EXPECT_EQ(allocations_of_decoding(config), 0);
}

// Runs `batch` and gives the logits of its one row; what that allocated is in `allocations`.
void run_counted(Runner& runner, const Batch& batch, std::vector<float>& logits) {
  allocations = 0;
  counting = true;
  runner.run(batch, [&](int64_t, Tensor rows, const LogitStats&) {
    std::ranges::copy_n(rows.f32(), rows.count(), logits.begin());
  });
  counting = false;
}

// Slot 1 holds what 64 tokens left in slot 0; the 65th token runs on from there twice.
TEST(Allocation, RestoringASnapshotTakesNoMemory) {
  for (const char* model :
       {"ling3-tiny", "ling25", "kimi-linear", "qwen3-next", "lfm2", "granite-hybrid"}) {
    for (int threads : {1, 2}) {
      std::unique_ptr<Runner> runner = load_runner({.model_path = golden_folder(model),
                                                    .threads = threads,
                                                    .page_size_tokens = 128,
                                                    .total_tokens_max = 2048});
      const StateClasses& classes = runner->classes();
      ASSERT_EQ(describe(classes[1]), "slots");
      std::vector<TokenId> tokens(65);
      for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<TokenId>(i * 7 % 90);
      std::vector<int32_t> pages = {0};
      auto vocabulary = static_cast<size_t>(runner->info().vocabulary);
      std::vector<float> first(vocabulary), restored(vocabulary), without(vocabulary);
      Batch prompt = one_span(classes, std::span(tokens).first(64), 0, 64, pages);
      prompt.logit_rows = {63};
      run_counted(*runner, prompt, first);
      Batch next = one_span(classes, tokens, 64, 1, pages);
      next.copies = {{.unit_class = 1, .from = 0, .to = 1}};
      run_counted(*runner, next, first);
      next.copies.clear();
      run_counted(*runner, next, without);
      next.copies = {{.unit_class = 1, .from = 1, .to = 0}};
      run_counted(*runner, next, restored);
      EXPECT_EQ(allocations, 0) << model << ", " << threads << " threads";
      EXPECT_TRUE(same_bits(restored, first)) << model;
      EXPECT_FALSE(same_bits(without, first)) << model;
    }
  }
}

}  // namespace
}  // namespace banyan::test::decode_test
