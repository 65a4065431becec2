// Reads mixture-of-experts settings from config.json.
//
// Families spell the same setting in many ways. router.cpp has one table of all spellings; a config
// may use any of them, or several with equal values. Settings that a family's router lacks (groups,
// a scale) are not read, so keys.h rejects a config that has them.
#pragma once

#include <cstdint>
#include <optional>

#include "nn/moe.h"
#include "weights/files/config_file.h"

namespace banyan {

// A router feature that is on or off.
struct RouterFlag {
  bool value = false;
  bool may_differ = false;  // config.json may override it

  static constexpr RouterFlag fixed(bool value) { return {value, false}; }
  static constexpr RouterFlag unless_said(bool value) { return {value, true}; }
};

struct RouterGroups {
  int64_t all = 1, chosen = 1;
};

// A family's router features, and defaults for missing keys.
struct RouterDefaults {
  int64_t experts = 0, top_k = 0;             // 0: the key is required
  RouterScore score = RouterScore::kSoftmax;  // config.json may not change it
  RouterFlag normalise = RouterFlag::fixed(true);
  RouterFlag bias = RouterFlag::fixed(false);  // selection only; not part of the weights
  std::optional<double> scale;                 // routed scaling factor; nullopt: none
  std::optional<RouterGroups> groups;          // nullopt: the family has no groups
  bool greedy = false;  // DeepSeek-V2: groups are optional, and scored by their best expert
  bool identity_experts = false;  // some experts may be identities
};

// The intermediate size of an expert.
struct ExpertWidth {
  int64_t width = 0;
  bool has_key = true;  // config.json may override it

  static constexpr ExpertWidth fixed(int64_t width) { return {width, false}; }
  static constexpr ExpertWidth unless_said(int64_t width) { return {width, true}; }
};

struct MoeDefaults {
  RouterDefaults router;
  ExpertWidth intermediate = {};  // 0: the key is required
  // Number and width of the shared experts. An unset or zero width means that of the routed
  // experts. If both are unset there is no shared expert; if only the count is unset there is one.
  std::optional<int64_t> shared;
  std::optional<ExpertWidth> shared_intermediate;
  bool lists = false;  // values may be lists with one equal entry per layer
};

// Reads router, selection bias and expert widths. Errors are collected in `config`.
MoeConfig read_moe(const ConfigFile& config, int64_t hidden, const MoeDefaults& defaults);

// DeepSeek-V3's mixture of experts: sigmoid scores, selection bias, expert groups, a scaling factor
// and shared experts.
constexpr MoeDefaults deepseek_moe(const RouterGroups& groups, double scale, int64_t experts = 0,
                                   int64_t top_k = 0) {
  return {.router = {.experts = experts,
                     .top_k = top_k,
                     .score = RouterScore::kSigmoid,
                     .normalise = RouterFlag::unless_said(true),
                     .bias = RouterFlag::fixed(true),
                     .scale = scale,
                     .groups = groups},
          .shared = 1};
}

// DeepSeek-V2's: softmax scores as they are, without a selection bias.
constexpr MoeDefaults deepseek_v2_moe() {
  return {.router = {.normalise = RouterFlag::fixed(false),
                     .scale = 1,
                     .groups = RouterGroups{},
                     .greedy = true},
          .shared = 2};
}

}  // namespace banyan
