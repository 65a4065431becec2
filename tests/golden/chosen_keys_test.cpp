// Attention to chosen keys, with every kind of index: the same bits however prompts are cut and
// whatever was cached; with all keys chosen, the bits of dense attention.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/select.h"
#include "support/drive.h"
#include "support/golden.h"
#include "support/models/checkpoint_copy.h"
#include "support/models/grown_checkpoint.h"

namespace banyan::test::chosen_keys_test {
namespace {

struct Kind {
  const char* golden;
  int block;  // tokens of a block, or those that are chosen one by one
};

constexpr Kind kKinds[] = {
    {"ring-sparse", 8}, {"minimax-m3", 4}, {"deepseek-v32", 24}, {"glm-moe-dsa", 24}};

std::vector<TokenId> prompt_of(const std::string& name) {
  std::vector<GoldenCase> cases = golden_cases();
  return GoldenReference(*std::ranges::find(cases, name, &GoldenCase::name)).ids("prompt_ids");
}

EngineConfig config_of(const std::string& folder, const std::string& kernels) {
  return {.model_path = folder,
          .kernels = kernels,
          .threads = 1,
          .page_size_tokens = 16,
          .total_tokens_max = 256,
          .running_max = 2,
          .chunked_prefill_tokens = 256};
}

TEST(ChosenKeys, AreTheSameForAnyCutPageAndNumberOfThreads) {
  for (const Kind& kind : kKinds) {
    std::vector<TokenId> prompt = prompt_of(kind.golden);
    for (const std::string& kernels : all_kernels()) {
      EngineConfig config = config_of(golden_folder(kind.golden), kernels);
      std::vector<float> whole = all_logits(*load_runner(config), prompt, 256);
      for (int page : {4, 16, 64, 1024}) {
        config.page_size_tokens = page;
        config.total_tokens_max = std::max(2 * page, 256);
        config.threads = page == 16 ? 2 : 1;
        std::unique_ptr<Runner> runner = load_runner(config);
        for (int chunk : {1, page, kind.block - 1, kind.block, kind.block + 1}) {
          EXPECT_TRUE(same_bits(all_logits(*runner, prompt, chunk), whole))
              << kind.golden << ", " << kernels << ", pages of " << page << ", chunks of " << chunk;
        }
      }
    }
  }
}

// A cached prefix that ends at a page boundary, and one that ends inside a page, which is copied.
TEST(ChosenKeys, AreTheSameBehindEveryCachedPrefix) {
  constexpr int64_t kTokens = 6;
  for (const Kind& kind : kKinds) {
    std::vector<TokenId> prompt = prompt_of(kind.golden);
    EngineConfig config = config_of(golden_folder(kind.golden), available_kernels().back());
    GenerateRequest request = {
        .prompt = prompt, .sampling = {.temperature = 0}, .options = {.max_new_tokens = kTokens}};
    config.radix_cache = false;
    Heard naive = run_alone(*load_engine(config), request);
    config.radix_cache = true;
    for (int page : {4, 16}) {
      config.page_size_tokens = page;
      std::unique_ptr<Engine> engine = load_engine(config);
      for (size_t cached = 1; cached < prompt.size(); ++cached) {
        engine->flush_cache();
        std::vector<TokenId> other(prompt.begin(), prompt.begin() + static_cast<int64_t>(cached));
        other.push_back(prompt[cached] == 5 ? 6 : 5);
        run_alone(*engine, {.prompt = other, .options = {.max_new_tokens = 2}});
        Heard heard = run_alone(*engine, request);
        EXPECT_EQ(heard.cached_tokens, static_cast<int64_t>(cached)) << kind.golden;
        EXPECT_EQ(heard.output_ids(), naive.output_ids()) << kind.golden << " behind " << cached;
        EXPECT_TRUE(same_bits(heard.output_logprobs(), naive.output_logprobs()))
            << kind.golden << " behind " << cached;
      }
    }
  }
}

// Logits of the golden checkpoint with something changed, over its prompt.
std::vector<float> changed_logits(const std::string& golden, const std::string& kernels,
                                  const std::function<void(CheckpointCopy&)>& change) {
  CheckpointCopy copy(golden);
  change(copy);
  TemporaryFolder folder;
  copy.save(folder);
  return all_logits(*load_runner(config_of(folder.path(), kernels)), prompt_of(golden), 256);
}

void erase_tensors(CheckpointCopy& c, std::string_view part) {
  std::erase_if(c.tensors, [&](const TestTensor& t) { return t.name.contains(part); });
}

TEST(ChosenKeys, OfAllHaveTheBitsOfAttentionToAll) {
  for (const std::string& kernels : all_kernels()) {
    auto compare = [&](const char* golden, auto choose_all, auto attend_to_all) {
      std::vector<float> dense = changed_logits(golden, kernels, attend_to_all);
      EXPECT_TRUE(same_bits(changed_logits(golden, kernels, choose_all), dense)) << golden;
      EXPECT_FALSE(same_bits(changed_logits(golden, kernels, [](auto&) {}), dense)) << golden;
    };
    compare(
        "ring-sparse", [](CheckpointCopy& c) { c.config["moba_topk"] = 64; },
        [](CheckpointCopy& c) {
          for (const char* key : {"block_size", "topk", "layer_freq"}) {
            c.config.erase(std::string("moba_") + key);
          }
          c.config.erase("use_moba_decode");
        });
    compare(
        "minimax-m3",
        [](CheckpointCopy& c) { c.config["sparse_attention_config"]["sparse_topk_blocks"] = 64; },
        [](CheckpointCopy& c) {
          c.config["sparse_attention_config"]["sparse_attention_freq"] = {0, 0, 0};
          erase_tensors(c, ".index_");
        });
    compare(
        "deepseek-v32", [](CheckpointCopy& c) { c.config["index_topk"] = 128; },
        [](CheckpointCopy& c) {
          c.config["architectures"] = {"DeepseekV3ForCausalLM"};
          for (const char* key : {"index_topk", "index_head_dim", "index_n_heads"}) {
            c.config.erase(key);
          }
          erase_tensors(c, ".indexer.");
        });
  }
}

}  // namespace
}  // namespace banyan::test::chosen_keys_test
