// Multimodal checkpoints: the language model computes the same as alone, under both naming schemes,
// and tensors that belong to nothing known are refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/registry.h"
#include "support/models/checkpoint_copy.h"

namespace banyan::test::language_part_test {
namespace {

struct Wrapped {
  const char* golden;
  const char* architecture;
};

constexpr Wrapped kWrapped[] = {
    {"gemma3", "Gemma3ForConditionalGeneration"},
    {"gemma4", "Gemma4ForConditionalGeneration"},
    {"gemma4-moe", "Gemma4ForConditionalGeneration"},
    {"deepseek-v3", "KimiK25ForConditionalGeneration"},
    {"llama4", "Llama4ForConditionalGeneration"},
    {"minimax-m3", "MiniMaxM3SparseForConditionalGeneration"},
    {"mistral-window", "Mistral3ForConditionalGeneration"},
    {"ministral3", "Mistral3ForConditionalGeneration"},
    {"mistral4", "Mistral3ForConditionalGeneration"},
    {"qwen3-5", "Qwen3_5ForConditionalGeneration"},
    {"qwen3-5-moe", "Qwen3_5MoeForConditionalGeneration"},
};

enum class Naming : uint8_t {
  kPublished,  // language_model.model.layers, language_model.lm_head
  kSaved,      // model.language_model.layers, lm_head
};

void wrap(CheckpointCopy& c, const std::string& architecture, Naming naming) {
  Json text = c.config;
  text.erase("architectures");
  c.config = {{"architectures", {architecture}},
              {"image_token_id", 90},
              {"text_config", text},
              {"vision_config", {{"depth", 2}}}};
  bool published = naming == Naming::kPublished;
  for (TestTensor& tensor : c.tensors) {
    bool inside = tensor.name.starts_with("model.");
    if (published) tensor.name.insert(0, "language_model.");
    if (!published && inside) tensor.name.insert(6, "language_model.");
  }
  for (const char* part : {"vision_tower", "multi_modal_projector", "visual"}) {
    std::string scope = published ? part : std::string("model.") + part;
    c.tensors.push_back({scope + ".norm.weight", "F32", {1}, "1234"});
  }
}

TEST(LanguagePart, ComputesWhatItComputesAlone) {
  for (const auto& [golden, architecture] : kWrapped) {
    std::vector<float> alone = logits_of(golden);
    for (Naming naming : {Naming::kPublished, Naming::kSaved}) {
      auto wrapped = [&](CheckpointCopy& c) { wrap(c, architecture, naming); };
      EXPECT_EQ(logits_of(golden, wrapped), alone) << golden << static_cast<int>(naming);
    }
  }
}

TEST(LanguagePart, IsReadAsStrictly) {
  for (const auto& [golden, architecture] : kWrapped) {
    expect_refused(golden, "text_config.alibi", [&](CheckpointCopy& c) {
      wrap(c, architecture, Naming::kPublished);
      c.config["text_config"]["alibi"] = true;
    });
    for (const char* name : {"model.audio.weight", "language_model.vision.weight"}) {
      expect_refused(golden, name, [&](CheckpointCopy& c) {
        wrap(c, architecture, Naming::kSaved);
        c.tensors.push_back({name, "F32", {1}, "1234"});
      });
    }
  }
  expect_refused("mistral-window", "a text model of type \"mamba\"", [](CheckpointCopy& c) {
    c.config["model_type"] = "mamba";
    wrap(c, "Mistral3ForConditionalGeneration", Naming::kPublished);
  });
}

// Every architecture that also sees has a case here.
TEST(LanguagePart, OfEveryFamilyIsTested) {
  for (const Family& family : registered_families()) {
    if (!family.architecture.ends_with("ForConditionalGeneration")) continue;
    bool tested = std::ranges::any_of(
        kWrapped, [&](const Wrapped& one) { return one.architecture == family.architecture; });
    EXPECT_TRUE(tested) << family.architecture;
  }
}

// Kimi K2.5 says how its weights are stored next to what they are of.
TEST(LanguagePart, MayAloneBeQuantised) {
  expect_refused("deepseek-v3", "quant_method \"made_up\"", [](CheckpointCopy& c) {
    c.config["quantization_config"] = {{"quant_method", "made_up"}};
    wrap(c, "KimiK25ForConditionalGeneration", Naming::kPublished);
  });
}

}  // namespace
}  // namespace banyan::test::language_part_test
