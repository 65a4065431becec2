#include "models/config/router.h"

#include <initializer_list>
#include <string_view>
#include <vector>

#include "models/config/common.h"

namespace banyan {
namespace {

// All spellings of each key. If config.json has none of them, errors name the first.
using Spellings = std::initializer_list<std::string_view>;
const Spellings kExperts = {"num_experts", "n_routed_experts", "num_local_experts",
                            "moe_num_experts"};
const Spellings kTopK = {"num_experts_per_tok",
                         "num_experts_per_token",
                         "experts_per_token",
                         "top_k_experts",
                         "moe_topk",
                         "moe_k"};
const Spellings kIntermediate = {"moe_intermediate_size", "expert_ffn_hidden_size",
                                 "expert_hidden_dim"};
const Spellings kShared = {"n_shared_experts", "num_shared_experts", "num_shared_expert",
                           "moe_num_shared_experts"};
const Spellings kSharedIntermediate = {"moe_shared_expert_intermediate_size",
                                       "shared_intermediate_size"};
const Spellings kGroups = {"n_group", "num_expert_group"};
const Spellings kTopGroups = {"topk_group"};
const Spellings kScale = {"routed_scaling_factor", "router_scaling_factor"};
const Spellings kIdentityExperts = {"zero_expert_num"};
const Spellings kScore = {"scoring_func", "score_function", "moe_router_activation_func"};
const Spellings kNormalise = {"norm_topk_prob", "moe_renormalize", "route_norm"};
const Spellings kBias = {"moe_router_enable_expert_bias", "use_expert_bias", "use_routing_bias",
                         "moe_use_aux_free"};

constexpr int64_t kSharedMax = 64;

struct Range {
  int64_t min, max;
};
constexpr Range kNumberOfExperts = {1, kExpertsMax}, kWidth = {1, kWidthMax};

class MoeReader {
 public:
  MoeReader(const ConfigFile& config, const MoeDefaults& defaults)
      : config_(config), defaults_(defaults) {}

  MoeConfig read(int64_t hidden) const {
    MoeConfig c{.hidden = hidden, .router = router()};
    c.selection_bias = flag(kBias, defaults_.router.bias);
    c.intermediate = width(kIntermediate, defaults_.intermediate);
    c.shared_intermediate = shared_width(c.intermediate);
    config_.only("router_dtype", {"fp32", "float32"});
    return c;
  }

 private:
  RouterShape router() const {
    const RouterDefaults& d = defaults_.router;
    RouterShape r{.experts = number(kExperts, d.experts, kNumberOfExperts),
                  .top_k = number(kTopK, d.top_k, kNumberOfExperts),
                  .score = d.score,
                  .normalise = flag(kNormalise, d.normalise)};
    if (d.groups) read_groups(*d.groups, r);
    if (d.scale) {
      r.scale = config_.number_or(config_.name_of(kScale), *d.scale, 1e-6, 1e6);
    }
    if (d.identity_experts) {
      r.identity_experts = config_.integer_or(config_.name_of(kIdentityExperts), 0, 0, kExpertsMax);
      config_.only("zero_expert_type", {"identity"});
    }
    const char* score = d.score == RouterScore::kSigmoid ? "sigmoid" : "softmax";
    for (std::string_view key : kScore) config_.only(key, {score});
    check(r);
    return r;
  }

  void read_groups(const RouterGroups& d, RouterShape& r) const {
    if (defaults_.router.greedy) {
      r.group_score = GroupScore::kMax;
      if (!limits_groups()) return;
    } else {
      config_.only("topk_method", {"noaux_tc"});
    }
    r.groups = number(kGroups, d.all, kNumberOfExperts);
    r.top_groups = number(kTopGroups, d.chosen, kNumberOfExperts);
    bool grouped = !config_.has("use_grouped_topk") || config_.flag("use_grouped_topk");
    if (!grouped) r.groups = r.top_groups = 1;
  }

  bool limits_groups() const {
    constexpr std::string_view kKey = "topk_method", kLimited = "group_limited_greedy";
    config_.only(kKey, {"greedy", "gready", kLimited});  // "gready": a default of the authors' code
    bool limits = config_.text_or(kKey, "greedy") == kLimited;
    if (!limits) config_.ignore({"n_group", "topk_group"});
    return limits;
  }

  int64_t shared_width(int64_t intermediate) const {
    if (!defaults_.shared && !defaults_.shared_intermediate) return 0;
    int64_t count = defaults_.shared ? number(kShared, *defaults_.shared, {0, kSharedMax}) : 1;
    ExpertWidth shared = defaults_.shared_intermediate.value_or(ExpertWidth::fixed(0));
    if (shared.width == 0) shared.width = intermediate;
    return count * width(kSharedIntermediate, shared);
  }

  int64_t width(Spellings names, const ExpertWidth& d) const {
    return d.has_key ? number(names, d.width, kWidth) : d.width;
  }

  // A fallback below the range means there is no default: the key is required.
  int64_t number(Spellings names, int64_t fallback, Range range) const {
    std::string_view key = config_.name_of(names);
    if (defaults_.lists) return number_for_all(key, fallback, range);
    return fallback < range.min ? config_.integer(key, range.min, range.max)
                                : config_.integer_or(key, fallback, range.min, range.max);
  }

  int64_t number_for_all(std::string_view key, int64_t fallback, Range range) const {
    std::vector<int64_t> values = config_.integers(key, range.min, range.max);
    for (int64_t value : values) {
      config_.expect(value == values[0], "{} differs between layers, which is not supported", key);
    }
    return values.empty() ? fallback : values[0];
  }

  bool flag(Spellings names, const RouterFlag& d) const {
    if (d.may_differ) return config_.flag_or(config_.name_of(names), d.value);
    for (std::string_view key : names) config_.only(key, {d.value});
    return d.value;
  }

  // Checks that the numbers are consistent.
  void check(const RouterShape& r) const {
    int64_t all = r.experts + r.identity_experts;
    config_.expect(all <= kExpertsMax, "{} experts; at most {} are supported", all, kExpertsMax);
    config_.expect(all % r.groups == 0, "{} experts do not divide into {} groups", all, r.groups);
    config_.expect(r.top_groups <= r.groups, "topk_group {} exceeds the number of groups, {}",
                   r.top_groups, r.groups);
    config_.expect(r.top_k <= all / r.groups * r.top_groups,
                   "top_k {} exceeds the experts in {} groups of {}", r.top_k, r.top_groups,
                   all / r.groups);
  }

  const ConfigFile& config_;
  const MoeDefaults& defaults_;
};

}  // namespace

MoeConfig read_moe(const ConfigFile& config, int64_t hidden, const MoeDefaults& defaults) {
  return MoeReader(config, defaults).read(hidden);
}

}  // namespace banyan
