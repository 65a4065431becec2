// What config.json says of mixtures of experts.
//
// Families spell the same number in many ways. All spellings are in one table in router.cpp, and a
// file may use any of them, or several that say the same. What a family's router does not have, as
// groups or a factor, is not read, so that a file that asks for it is refused (keys.h).
#pragma once

#include <cstdint>
#include <optional>

#include "nn/moe.h"
#include "weights/files/config_file.h"

namespace banyan {

// Something that a family's router does or does not.
struct RouterFlag {
  bool value = false;
  bool may_differ = false;  // the file may say otherwise

  static constexpr RouterFlag fixed(bool value) { return {value, false}; }
  static constexpr RouterFlag unless_said(bool value) { return {value, true}; }
};

struct RouterGroups {
  int64_t all = 1, chosen = 1;
};

// What a family's router has, and what a number is that the file leaves out.
struct RouterDefaults {
  int64_t experts = 0, top_k = 0;             // 0: the file must say it
  RouterScore score = RouterScore::kSoftmax;  // the file may name no other
  RouterFlag normalise = RouterFlag::fixed(true);
  RouterFlag bias = RouterFlag::fixed(false);  // one that only helps to choose
  std::optional<double> scale;                 // of the weights; none: there is no such factor
  std::optional<RouterGroups> groups;          // none: there are no groups
  bool identity_experts = false;               // some may return their input
};

// The intermediate width of an expert.
struct ExpertWidth {
  int64_t width = 0;
  bool has_key = true;  // the file may say another

  static constexpr ExpertWidth fixed(int64_t width) { return {width, false}; }
  static constexpr ExpertWidth unless_said(int64_t width) { return {width, true}; }
};

struct MoeDefaults {
  RouterDefaults router;
  ExpertWidth intermediate = {};  // 0: the file must say it
  // How many experts all rows share, and how wide one is: 0, or none, for as wide as the others.
  // Where both are none there is no shared expert; without a number there is one.
  std::optional<int64_t> shared;
  std::optional<ExpertWidth> shared_intermediate;
  bool lists = false;  // numbers may be lists, with the same number for each layer
};

// Router, bias of the choice, and widths. Problems stick to `config`.
MoeConfig read_moe(const ConfigFile& config, int64_t hidden, const MoeDefaults& defaults);

// DeepSeek-V3's mixture of experts: sigmoids, a bias that only helps to choose, groups, a factor,
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

}  // namespace banyan
