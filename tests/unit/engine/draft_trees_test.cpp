// Drafts with branches: a draft tree changes no output, and its branches save steps.
#include <gtest/gtest.h>

#include "engine/assemble.h"
#include "engine/drafters/suffix.h"
#include "engine/sequence.h"
#include "support/drive.h"
#include "support/liar.h"
#include "support/shared.h"

namespace banyan::test::draft_trees_test {
namespace {

using Tokens = std::vector<TokenId>;
constexpr int kVocabulary = 128;

EngineConfig config_of(const std::string& model, int topk) {
  return {.model_path = source_path("tests/golden/models/" + model),
          .load_format = "dummy",
          .threads = 1,
          .page_size_tokens = 4,
          .total_tokens_max = 512,
          .running_max = 4,
          .chunked_prefill_tokens = 64,
          .draft_topk = topk,
          .measure_drafts = false};
}

// Its drafts are wrong from the token at `after` on. Branches leave them there and after the first
// token, and the first one is right.
class Forked final : public Drafter {
 public:
  Forked(Tokens output, int64_t after) : output_(std::move(output)), after_(after) {}

  void propose(std::span<DraftTask* const> tasks) override {
    for (DraftTask* task : tasks) {
      int64_t next = task->sequence->length() - task->sequence->prompt_tokens;
      if (next + after_ + 3 > std::ssize(output_)) continue;
      for (int64_t j = 0; j < after_ + 2; ++j) {
        TokenId right = at(output_, next + j);
        task->add(j < after_ ? right : (right + 1) % kVocabulary, 0.9f);
      }
      fill(task->add_branch(after_), {at(output_, next + after_), at(output_, next + after_ + 1)});
      fill(task->add_branch(0), {(at(output_, next) + 2) % kVocabulary});
    }
  }

 private:
  static void fill(DraftTask::Branch* branch, const Tokens& tokens) {
    if (branch == nullptr) return;
    branch->tokens = tokens;
    branch->confidences.assign(tokens.size(), 0.9f);
  }

  const Tokens output_;
  const int64_t after_;
};

std::unique_ptr<Engine> load_with(const EngineConfig& config, std::unique_ptr<Drafter> drafter) {
  std::vector<NamedDrafter> drafters;
  drafters.push_back({"test", std::move(drafter)});
  auto engine = EngineAssembly::load(config, registered_families(), {}, std::move(drafters));
  EXPECT_TRUE(engine.has_value()) << (engine ? "" : engine.error().message);
  return std::move(*engine);
}

DrafterStats stats_of(const Engine& engine) {
  EngineStats stats = engine.stats();
  return *std::ranges::find(stats.drafters, "test", &DrafterStats::name);
}

GenerateRequest asking(uint64_t seed) {
  return {.prompt = {5, 9, 77, 5, 30, 0, 42, 42},
          .sampling = {.temperature = seed % 2 == 0 ? 0.f : 1.f, .seed = seed},
          .options = {.max_new_tokens = 60, .ignore_eos = true, .top_logprobs = 3}};
}

TEST(DraftTrees, ABranchIsFollowedWhereTheDraftIsWrong) {
  GenerateRequest request = asking(3);
  Heard plain = run_alone(*load_engine(config_of("qwen3-tied", 1)), request);
  int64_t followed = 0;
  for (int64_t after : {0, 1, 2}) {
    EngineConfig config = config_of("qwen3-tied", 3);
    auto engine = load_with(config, std::make_unique<Forked>(plain.output_ids(), after));
    expect_same(run_alone(*engine, request), plain);
    DrafterStats stats = stats_of(*engine);
    EXPECT_LE(stats.followed_branches, stats.branches);
    followed += stats.followed_branches;
    EXPECT_EQ(engine->stats().steps + stats.accepted_tokens, 60) << after;
    EngineConfig chains = config_of("qwen3-tied", 1);
    auto chained = load_with(chains, std::make_unique<Forked>(plain.output_ids(), after));
    expect_same(run_alone(*chained, request), plain);
    EXPECT_EQ(stats_of(*chained).branches, 0);
    EXPECT_LT(engine->stats().steps, chained->stats().steps) << after;
  }
  EXPECT_GT(followed, 30);
}

// Page sizes that branches cross, leave at their end and never leave.
TEST(DraftTrees, ChangeNothingWhateverTheFamilyAndThePage) {
  for (const char* model : {"qwen3-tied", "deepseek-v3", "gpt-oss", "minimax-m2", "glm4-moe",
                            "gemma3", "longcat-flash", "deepseek-v32", "llama4"}) {
    for (int page : {1, 4, 16}) {
      EngineConfig config = config_of(model, 1);
      config.page_size_tokens = page;
      auto plain = load_engine(config);
      config.draft_topk = 4;
      Tokens output;
      auto liar =
          std::make_unique<Liar>(page, kVocabulary, [&](const Sequence&) { return output; });
      auto engine = load_with(config, std::move(liar));
      for (uint64_t seed = 1; seed < 5; ++seed) {
        GenerateRequest request = asking(seed);
        if (seed == 3) request.sampling.frequency_penalty = 0.7f;
        if (seed == 4) request.sampling.dry_multiplier = 0.8f;
        Heard naive = run_alone(*plain, request);
        output = naive.output_ids();
        expect_same(run_alone(*engine, request), naive);
      }
      EXPECT_GT(stats_of(*engine).followed_branches, 0) << model << ", pages of " << page;
      EngineStats stats = engine->stats();
      EXPECT_EQ(stats.pages_free + stats.pages_cached, stats.pages_total);
    }
  }
}

// A state that is overwritten in place, or has one row for several tokens, has no copy for a
// branch.
TEST(DraftTrees, AreChainsForModelsWithOtherStates) {
  for (const char* model : {"ling3-tiny", "qwen3-next", "ring-sparse"}) {
    GenerateRequest request = asking(1);
    Heard plain = run_alone(*load_engine(config_of(model, 1)), request);
    auto engine = load_with(config_of(model, 3), std::make_unique<Forked>(plain.output_ids(), 1));
    expect_same(run_alone(*engine, request), plain);
    EXPECT_EQ(stats_of(*engine).branches, 0) << model;
    EXPECT_GT(stats_of(*engine).accepted_tokens, 0) << model;
  }
}

TEST(DraftTrees, SuffixesBranchWhereTheTextHasGoneOnInTwoWays) {
  auto drafter = make_suffix_drafter();
  Sequence s;
  s.tokens = {1, 2, 50, 51, 9, 1, 2, 60, 61, 8, 1, 2, 50, 51, 9, 8, 7, 1, 2};
  s.prompt_tokens = std::ssize(s.tokens);
  s.tokens_max = 100;
  s.cached_tokens = 0;
  DraftTask task{.sequence = &s, .tokens_max = 8, .branches_max = 3};
  DraftTask* tasks[] = {&task};
  drafter->propose(tasks);
  EXPECT_EQ(task.tokens, (Tokens{50, 51, 9}));
  ASSERT_EQ(task.branch_count, 1);
  EXPECT_EQ(task.branches[0].after, 0);
  EXPECT_EQ(task.branches[0].tokens, (Tokens{60, 61, 8}));
}

}  // namespace
}  // namespace banyan::test::draft_trees_test
