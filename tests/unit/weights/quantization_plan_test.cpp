// Which matrices --quantization and its overrides select.
#include "weights/quantization_plan.h"

#include <gtest/gtest.h>

namespace banyan::quantization_plan_test {
namespace {

std::string chosen(const QuantizationPlan& plan, const std::string& name,
                   MatrixUse use = MatrixUse::kMultiply) {
  QuantizationPlan::Choice choice = plan.choose(name, use);
  if (!choice.made) return "nothing";
  return choice.format == nullptr ? "as stored" : std::string(choice.format->name);
}

std::string error_of(std::string_view format, const std::vector<std::string>& overrides) {
  auto plan = QuantizationPlan::create(format, overrides);
  return plan ? "" : plan.error().message;
}

TEST(QuantizationPlan, AsksForNothingByDefault) {
  EXPECT_EQ(chosen(QuantizationPlan(), "a"), "nothing");
  EXPECT_EQ(chosen(QuantizationPlan::create("none", {}).value(), "a"), "nothing");
}

TEST(QuantizationPlan, LeavesLookUpsUnlessTheyAreNamed) {
  auto plan = QuantizationPlan::create("int4", {"^embed=int8"}).value();
  EXPECT_EQ(chosen(plan, "q_proj"), "int4");
  EXPECT_EQ(chosen(plan, "tied", MatrixUse::kBoth), "int4");
  EXPECT_EQ(chosen(plan, "lookup", MatrixUse::kLookUp), "nothing");
  EXPECT_EQ(chosen(plan, "embed", MatrixUse::kLookUp), "int8");
}

TEST(QuantizationPlan, TheLastOverrideThatMatchesDecides) {
  auto plan = QuantizationPlan::create(
                  "int4", {"layers\\.0\\.=int8", "q_proj$=none", "a=b.*=bf16", "absent=f32"})
                  .value();
  EXPECT_EQ(chosen(plan, "layers.0.k_proj"), "int8");
  EXPECT_EQ(chosen(plan, "layers.0.q_proj"), "as stored");
  EXPECT_EQ(chosen(plan, "layers.10.k_proj"), "int4");
  EXPECT_EQ(chosen(plan, "a=bc"), "bf16");
  Status matched = plan.check_overrides_matched();
  ASSERT_FALSE(matched.has_value());
  EXPECT_EQ(matched.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(matched.error().message.find("\"absent=f32\" matches no matrix"), std::string::npos);
}

TEST(QuantizationPlan, RefusesByName) {
  EXPECT_NE(error_of("int3", {})
                .find("quantization is \"int3\"; supported: none, weight-only, "
                      "int8, int4, mxfp4"),
            std::string::npos);
  for (const char* wrong :
       {"int4:", "int4:33", "fp8:128", "mxfp4:32", "none:32", "weight-only:32", ":", "int4:64:1"}) {
    EXPECT_NE(error_of(wrong, {}), "") << wrong;
  }
  EXPECT_NE(error_of("uint4", {}), "");  // only checkpoints have it
  EXPECT_NE(error_of("bf16", {}), "");
  EXPECT_NE(error_of("none", {"lm_head"}).find("is not REGEX=FORMAT"), std::string::npos);
  EXPECT_NE(error_of("none", {"=int8"}).find("is not REGEX=FORMAT"), std::string::npos);
  EXPECT_NE(error_of("none", {"x=int5"}).find("\"int5\" is not a format"), std::string::npos);
  EXPECT_NE(error_of("none", {"(x=int8"}).find("invalid regex at offset"), std::string::npos);
}

TEST(QuantizationPlan, WeightOnlyLeavesMatricesAsTheyAreStored) {
  auto plan =
      QuantizationPlan::create("weight-only", {"lm_head=none", "o_proj=weight-only"}).value();
  QuantizationPlan::Choice all = plan.choose("x", MatrixUse::kMultiply);
  EXPECT_TRUE(all.weight_only && !all.made && all.format == nullptr);
  EXPECT_FALSE(plan.choose("x", MatrixUse::kLookUp).weight_only);
  EXPECT_FALSE(plan.choose("lm_head", MatrixUse::kMultiply).weight_only);
  EXPECT_TRUE(plan.choose("o_proj", MatrixUse::kMultiply).weight_only);
}

TEST(QuantizationPlan, GroupsMayBeChosen) {
  auto plan = QuantizationPlan::create("int8:128", {"lm_head=int4:64"}).value();
  EXPECT_EQ(plan.choose("x", MatrixUse::kMultiply).group, 128);
  EXPECT_EQ(plan.choose("lm_head", MatrixUse::kMultiply).group, 64);
}

TEST(QuantizationPlan, AnEvilRegexEnds) {
  auto plan = QuantizationPlan::create("none", {"(a+)+$=int8"}).value();
  EXPECT_EQ(chosen(plan, std::string(64, 'a') + "b"), "nothing");
}

}  // namespace
}  // namespace banyan::quantization_plan_test
