// The model families that there are.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "banyan/status.h"
#include "models/model.h"
#include "weights/builder.h"
#include "weights/files/config_file.h"

namespace banyan {

// What `banyan models` says of a family.
struct FamilyNotes {
  std::string_view mixers = "";       // "GQA, windows"
  std::string_view ffn = "";          // "dense, experts"
  std::string_view checkpoints = "";  // published ones, by name
  std::string_view limits = "";       // of what is supported; "": none to speak of
};

struct Family {
  std::string_view architecture;  // as config.json spells it
  // Reads the config, refusing what it does not support, then declares the weights.
  Result<std::unique_ptr<Model>> (*load)(const ConfigFile& config, Builder b);
  FamilyNotes notes = {};
};

// A family that people ask for and that is not supported.
struct RefusedFamily {
  std::string_view architecture;
  std::string_view why;
};

std::span<const Family> registered_families();
std::span<const RefusedFamily> refused_families();

// An unknown architecture is an error that lists the known ones, or says why it is not supported.
Result<const Family*> find_family(std::string_view architecture,
                                  std::span<const Family> families = registered_families());

// One per family and spelling of its config.
Result<std::unique_ptr<Model>> load_deepseek_v3(const ConfigFile& config, Builder b);
Result<std::unique_ptr<Model>> load_ernie4_5(const ConfigFile& config, Builder b);
Result<std::unique_ptr<Model>> load_ernie4_5_moe(const ConfigFile& config, Builder b);
Result<std::unique_ptr<Model>> load_exaone4(const ConfigFile& config, Builder b);
Result<std::unique_ptr<Model>> load_gemma2(const ConfigFile& config, Builder b);
Result<std::unique_ptr<Model>> load_gemma3(const ConfigFile& config, Builder b);
Result<std::unique_ptr<Model>> load_gemma4(const ConfigFile& config, Builder b);
Result<std::unique_ptr<Model>> load_glm4(const ConfigFile& config, Builder b);
Result<std::unique_ptr<Model>> load_glm4_moe(const ConfigFile& config, Builder b);
Result<std::unique_ptr<Model>> load_glm4_moe_lite(const ConfigFile& config, Builder b);
Result<std::unique_ptr<Model>> load_gpt_oss(const ConfigFile& config, Builder b);
Result<std::unique_ptr<Model>> load_granite(const ConfigFile& config, Builder b);
Result<std::unique_ptr<Model>> load_granite_hybrid(const ConfigFile& config, Builder b);
Result<std::unique_ptr<Model>> load_hunyuan_dense(const ConfigFile& config, Builder b);
Result<std::unique_ptr<Model>> load_hunyuan_moe(const ConfigFile& config, Builder b);
Result<std::unique_ptr<Model>> load_kimi_linear(const ConfigFile& config, Builder b);
Result<std::unique_ptr<Model>> load_lfm2(const ConfigFile& config, Builder b);
Result<std::unique_ptr<Model>> load_lfm2_moe(const ConfigFile& config, Builder b);
Result<std::unique_ptr<Model>> load_ling2(const ConfigFile& config, Builder b);
Result<std::unique_ptr<Model>> load_ling2_5(const ConfigFile& config, Builder b);
Result<std::unique_ptr<Model>> load_ling3(const ConfigFile& config, Builder b);
Result<std::unique_ptr<Model>> load_ling3_saved(const ConfigFile& config, Builder b);
Result<std::unique_ptr<Model>> load_llama(const ConfigFile& config, Builder b);
Result<std::unique_ptr<Model>> load_llama4(const ConfigFile& config, Builder b);
Result<std::unique_ptr<Model>> load_longcat_flash(const ConfigFile& config, Builder b);
Result<std::unique_ptr<Model>> load_minimax_m2(const ConfigFile& config, Builder b);
Result<std::unique_ptr<Model>> load_ministral3(const ConfigFile& config, Builder b);
Result<std::unique_ptr<Model>> load_mistral(const ConfigFile& config, Builder b);
Result<std::unique_ptr<Model>> load_mistral3(const ConfigFile& config, Builder b);
Result<std::unique_ptr<Model>> load_mistral4(const ConfigFile& config, Builder b);
Result<std::unique_ptr<Model>> load_mixtral(const ConfigFile& config, Builder b);
Result<std::unique_ptr<Model>> load_nemotron_h(const ConfigFile& config, Builder b);
Result<std::unique_ptr<Model>> load_olmo2(const ConfigFile& config, Builder b);
Result<std::unique_ptr<Model>> load_olmo3(const ConfigFile& config, Builder b);
Result<std::unique_ptr<Model>> load_phi3(const ConfigFile& config, Builder b);
Result<std::unique_ptr<Model>> load_qwen2(const ConfigFile& config, Builder b);
Result<std::unique_ptr<Model>> load_qwen3(const ConfigFile& config, Builder b);
Result<std::unique_ptr<Model>> load_qwen3_5(const ConfigFile& config, Builder b);
Result<std::unique_ptr<Model>> load_qwen3_5_moe(const ConfigFile& config, Builder b);
Result<std::unique_ptr<Model>> load_qwen3_moe(const ConfigFile& config, Builder b);
Result<std::unique_ptr<Model>> load_qwen3_next(const ConfigFile& config, Builder b);
Result<std::unique_ptr<Model>> load_seed_oss(const ConfigFile& config, Builder b);
Result<std::unique_ptr<Model>> load_smollm3(const ConfigFile& config, Builder b);

}  // namespace banyan
