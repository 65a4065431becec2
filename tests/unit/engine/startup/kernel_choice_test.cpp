// The weight format that decides a model's kernel table.
#include "engine/startup/kernel_choice.h"

#include <gtest/gtest.h>

#include <string>

#include "banyan/engine.h"
#include "support/models/tiny_model.h"
#include "support/shared.h"

namespace banyan::test::kernel_choice_test {
namespace {

// Tables that run everywhere stand for those that are fast: one for int8, the other for the rest.
KernelChoices made_up() {
  KernelChoices choices;
  for (size_t f = 0; f < kGemmFormats.size(); ++f) {
    bool int8 = kGemmFormats[f].name == "int8";
    choices.tables[f] = int8 ? "fenced" : "portable";
    choices.reasons[f] = int8 ? "good at integers" : "good at the rest";
  }
  return choices;
}

TEST(KernelChoice, TheFormatOfMostProductsDecides) {
  TemporaryFolder folder;
  EngineConfig config = tiny_model(folder);
  auto plain = kernels_among(made_up(), config, registered_families());
  ASSERT_TRUE(plain.has_value()) << plain.error().message;
  EXPECT_STREQ(plain->table->name, "portable");
  EXPECT_TRUE(plain->reason.ends_with(", good at the rest")) << plain->reason;

  config.quantization = "int8";
  auto rounded = kernels_among(made_up(), config, registered_families());
  ASSERT_TRUE(rounded.has_value()) << rounded.error().message;
  EXPECT_STREQ(rounded->table->name, "fenced");
  EXPECT_EQ(rounded->reason, "for weights of int8, good at integers");

  // A few matrices of another format do not.
  config.quantization_overrides = {"layers.0.self_attn=none"};
  EXPECT_STREQ(kernels_among(made_up(), config, registered_families())->table->name, "fenced");
}

TEST(KernelChoice, AModelIsReadOnlyWhereFormatsDiffer) {
  KernelChoices alike;
  alike.tables.fill("portable");
  alike.reasons.fill("the only ones");
  EngineConfig nowhere = {.model_path = "/nowhere"};
  auto kernels = kernels_among(alike, nowhere, registered_families());
  ASSERT_TRUE(kernels.has_value());
  EXPECT_EQ(kernels->reason, "the only ones");
  EXPECT_FALSE(kernels_among(made_up(), nowhere, registered_families()).has_value());
}

TEST(KernelChoice, WhatIsAskedForIsTaken) {
  TemporaryFolder folder;
  EngineConfig config = tiny_model(folder);
  config.kernels = "portable";
  auto info = inspect_model(config);
  ASSERT_TRUE(info.has_value()) << info.error().message;
  EXPECT_EQ(info->kernels, "portable");
  EXPECT_EQ(info->kernels_reason, "asked for");
  config.kernels = "auto";
  auto engine = Engine::load(config);
  ASSERT_TRUE(engine.has_value()) << engine.error().message;
  EXPECT_NE((*engine)->info().kernels_reason, "");
  EXPECT_EQ((*engine)->info().kernels, inspect_model(config)->kernels);
}

}  // namespace
}  // namespace banyan::test::kernel_choice_test
