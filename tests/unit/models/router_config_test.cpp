// Mixture-of-experts settings of config.json, in each of their spellings.
#include "models/config/router.h"

#include <gtest/gtest.h>

#include <string>

#include "support/value_or_abort.h"

namespace banyan::test::router_config_test {
namespace {

struct Read {
  MoeConfig moe;
  std::string error;  // empty: none
};

Read read(const Json& config, const MoeDefaults& defaults) {
  ConfigFile file = value_or_abort(ConfigFile::parse(config.dump(), "config.json"));
  Read result{.moe = read_moe(file, 64, defaults)};
  Status status = file.finish();
  if (!status) result.error = status.error().message;
  return result;
}

// Everything that a router may have, with values that are no defaults.
constexpr MoeDefaults kAll = {.router = {.score = RouterScore::kSigmoid,
                                         .normalise = RouterFlag::unless_said(true),
                                         .bias = RouterFlag::unless_said(true),
                                         .scale = 1,
                                         .groups = RouterGroups{},
                                         .identity_experts = true},
                              .shared = 1,
                              .shared_intermediate = ExpertWidth::unless_said(0)};

Json all_keys() {
  return {{"num_experts", 24},
          {"num_experts_per_tok", 3},
          {"n_group", 5},
          {"topk_group", 2},
          {"norm_topk_prob", false},
          {"routed_scaling_factor", 2.5},
          {"zero_expert_num", 6},
          {"use_expert_bias", false},
          {"n_shared_experts", 2},
          {"moe_intermediate_size", 48},
          {"scoring_func", "sigmoid"},
          {"moe_shared_expert_intermediate_size", 56}};
}

void expect_all(const Json& config) {
  auto [moe, error] = read(config, kAll);
  SCOPED_TRACE(config.dump());
  EXPECT_EQ(error, "");
  EXPECT_EQ(moe.hidden, 64);
  EXPECT_EQ(moe.router.experts, 24);
  EXPECT_EQ(moe.router.identity_experts, 6);
  EXPECT_EQ(moe.router.top_k, 3);
  EXPECT_EQ(moe.router.groups, 5);
  EXPECT_EQ(moe.router.top_groups, 2);
  EXPECT_EQ(moe.router.score, RouterScore::kSigmoid);
  EXPECT_FALSE(moe.router.normalise);
  EXPECT_FLOAT_EQ(moe.router.scale, 2.5f);
  EXPECT_FALSE(moe.selection_bias);
  EXPECT_EQ(moe.intermediate, 48);
  EXPECT_EQ(moe.shared_intermediate, 2 * 56);
}

TEST(RouterConfig, IsReadInEverySpelling) {
  expect_all(all_keys());
  for (auto [usual, other] : {std::pair{"num_experts", "n_routed_experts"},
                              {"num_experts", "num_local_experts"},
                              {"num_experts", "moe_num_experts"},
                              {"num_experts_per_tok", "num_experts_per_token"},
                              {"num_experts_per_tok", "experts_per_token"},
                              {"num_experts_per_tok", "top_k_experts"},
                              {"num_experts_per_tok", "moe_topk"},
                              {"num_experts_per_tok", "moe_k"},
                              {"n_group", "num_expert_group"},
                              {"norm_topk_prob", "moe_renormalize"},
                              {"norm_topk_prob", "route_norm"},
                              {"routed_scaling_factor", "router_scaling_factor"},
                              {"moe_intermediate_size", "expert_hidden_dim"},
                              {"use_expert_bias", "moe_router_enable_expert_bias"},
                              {"use_expert_bias", "use_routing_bias"},
                              {"use_expert_bias", "moe_use_aux_free"},
                              {"n_shared_experts", "num_shared_experts"},
                              {"n_shared_experts", "num_shared_expert"},
                              {"n_shared_experts", "moe_num_shared_experts"},
                              {"moe_intermediate_size", "expert_ffn_hidden_size"},
                              {"scoring_func", "score_function"},
                              {"scoring_func", "moe_router_activation_func"}}) {
    Json config = all_keys();
    config[other] = config[usual];
    expect_all(config);  // both, which say the same
    config.erase(usual);
    expect_all(config);
  }
}

// The error of all_keys() with another value of one.
std::string error_with(const char* key, const Json& value, const MoeDefaults& defaults = kAll) {
  Json config = all_keys();
  config[key] = value;
  return read(config, defaults).error;
}

void expect_words(const std::string& text, const std::string& words) {
  EXPECT_NE(text.find(words), std::string::npos) << text << "\n  does not say: " << words;
}

TEST(RouterConfig, ErrorsNameTheKeyAsTheFileSpellsIt) {
  expect_words(error_with("num_local_experts", 8), "num_experts = 24, but num_local_experts = 8");
  Json config = all_keys();
  config.erase("num_experts");
  expect_words(read(config, kAll).error, "num_experts");
  config["moe_num_experts"] = 1 << 20;
  expect_words(read(config, kAll).error, "moe_num_experts");
  config["moe_num_experts"] = "many";
  expect_words(read(config, kAll).error, "moe_num_experts");
}

TEST(RouterConfig, RefusesWhatTheFamilyDoesNotCompute) {
  expect_words(error_with("score_function", "softmax"), "score_function");
  expect_words(error_with("topk_method", "greedy"), "topk_method");
  expect_words(error_with("router_dtype", "bf16"), "router_dtype");
  expect_words(error_with("zero_expert_type", "drop"), "zero_expert_type");
  MoeDefaults fixed = kAll;
  fixed.router.normalise = RouterFlag::fixed(true);
  expect_words(error_with("scoring_func", "sigmoid", fixed), "norm_topk_prob = false");
  fixed.router.normalise = RouterFlag::fixed(false);
  fixed.router.bias = RouterFlag::fixed(true);
  expect_words(error_with("scoring_func", "sigmoid", fixed), "use_expert_bias = false");
}

TEST(RouterConfig, NumbersMakeSenseTogether) {
  expect_words(error_with("n_group", 7), "30 experts do not divide into 7 groups");
  expect_words(error_with("topk_group", 6), "topk_group 6 exceeds the number of groups, 5");
  expect_words(error_with("num_experts_per_tok", 13),
               "top_k 13 exceeds the experts in 2 groups of 6");
  expect_words(error_with("zero_expert_num", 4090), "4114 experts; at most 4096");
}

TEST(RouterConfig, GroupsAreSwitchedOff) {
  Json config = all_keys();
  config["use_grouped_topk"] = false;
  auto [moe, error] = read(config, kAll);
  EXPECT_EQ(error, "");
  EXPECT_EQ(moe.router.groups, 1);
  EXPECT_EQ(moe.router.top_groups, 1);
}

TEST(RouterConfig, OfDeepseekV2HasGroupsOnlyIfItsMethodLimitsThem) {
  Json config = {{"n_routed_experts", 24},
                 {"num_experts_per_tok", 3},
                 {"n_group", 6},
                 {"topk_group", 2},
                 {"norm_topk_prob", false},
                 {"scoring_func", "softmax"},
                 {"moe_intermediate_size", 48},
                 {"n_shared_experts", 1}};
  for (const char* method : {"greedy", "gready", "group_limited_greedy"}) {
    config["topk_method"] = method;
    auto [moe, error] = read(config, deepseek_v2_moe());
    EXPECT_EQ(error, "");
    bool limited = config["topk_method"] == "group_limited_greedy";
    EXPECT_EQ(moe.router.groups, limited ? 6 : 1) << method;
    EXPECT_EQ(moe.router.top_groups, limited ? 2 : 1) << method;
    EXPECT_TRUE(!limited || moe.router.group_score == GroupScore::kMax);
    EXPECT_FALSE(moe.router.normalise);
  }
  config["topk_method"] = "noaux_tc";
  expect_words(read(config, deepseek_v2_moe()).error, "topk_method");
  config["topk_method"] = "greedy";
  config["norm_topk_prob"] = true;
  expect_words(read(config, deepseek_v2_moe()).error, "norm_topk_prob = true");
}

TEST(RouterConfig, LeftOutNumbersAreTheFamilys) {
  auto [moe, error] = read(Json::object(), {.router = {.experts = 32, .top_k = 4, .scale = 1.5},
                                            .intermediate = ExpertWidth::fixed(96),
                                            .shared_intermediate = ExpertWidth::unless_said(40)});
  EXPECT_EQ(error, "");
  EXPECT_EQ(moe.router.experts, 32);
  EXPECT_EQ(moe.router.top_k, 4);
  EXPECT_EQ(moe.router.groups, 1);
  EXPECT_TRUE(moe.router.normalise);
  EXPECT_FALSE(moe.selection_bias);
  EXPECT_FLOAT_EQ(moe.router.scale, 1.5f);
  EXPECT_EQ(moe.intermediate, 96);
  EXPECT_EQ(moe.shared_intermediate, 40);
}

TEST(RouterConfig, ListsSayTheSameOfEachLayer) {
  MoeDefaults defaults = {.router = {.experts = 1, .top_k = 1}, .shared = 1, .lists = true};
  Json config = {{"num_experts", {8, 8}}, {"moe_topk", {2, 2}}, {"moe_intermediate_size", 16}};
  auto [moe, error] = read(config, defaults);
  EXPECT_EQ(error, "");
  EXPECT_EQ(moe.router.experts, 8);
  EXPECT_EQ(moe.router.top_k, 2);
  EXPECT_EQ(moe.shared_intermediate, 16);
  config["moe_topk"] = {2, 3};
  expect_words(read(config, defaults).error, "moe_topk differs between layers");
}

}  // namespace
}  // namespace banyan::test::router_config_test
