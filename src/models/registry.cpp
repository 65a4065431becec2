#include "models/registry.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/error.h"

namespace banyan {
namespace {

constexpr std::array kFamilies = {
    Family{"BailingHybridForCausalLM", load_bailing_hybrid},
    Family{"BailingMoeV2ForCausalLM", load_bailing_v2},
    Family{"BailingMoeV2_5ForCausalLM", load_bailing_v2_5},
    Family{"BailingMoeV3ForCausalLM", load_bailing_v3},
    Family{"DeepseekV3ForCausalLM", load_deepseek_v3},
    Family{"KimiLinearForCausalLM", load_kimi_linear},
    Family{"LlamaForCausalLM", load_llama},
    Family{"LongcatFlashForCausalLM", load_longcat_flash},
    Family{"MistralForCausalLM", load_mistral},
    Family{"Qwen2ForCausalLM", load_qwen2},
    Family{"Qwen3ForCausalLM", load_qwen3},
    Family{"Qwen3MoeForCausalLM", load_qwen3_moe},
};

}  // namespace

std::span<const Family> registered_families() {
  return kFamilies;
}

Result<const Family*> find_family(std::string_view architecture, std::span<const Family> families) {
  auto it = std::ranges::find(families, architecture, &Family::architecture);
  if (it != families.end()) return &*it;
  std::vector<std::string_view> names;
  for (const Family& family : families) names.push_back(family.architecture);
  return unsupported("config.json: architecture \"{}\" is not supported; supported: {}",
                     architecture, fmt::join(names, ", "));
}

}  // namespace banyan
