// The table of supported model families, looked up by `architectures` in config.json. Constant
// data: any thread may read it.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "banyan/status.h"
#include "models/model.h"
#include "weights/builder.h"
#include "weights/files/config_file.h"

namespace banyan {

// The notes that `banyan models` prints about a family.
struct FamilyNotes {
  std::string_view mixers = "";       // for example "GQA, windows"
  std::string_view ffn = "";          // for example "dense, experts"
  std::string_view checkpoints = "";  // names of published checkpoints
  std::string_view limits = "";       // what is not supported; "": nothing worth noting
};

// Reads the config and rejects what it does not support, then declares the weights.
using LoadFamily = Result<std::unique_ptr<Model>>(const ConfigFile& config, Builder b);

struct Family {
  std::string_view architecture;  // as in config.json
  LoadFamily* load;
  FamilyNotes notes = {};
};

// A well-known family that is not supported.
struct RefusedFamily {
  std::string_view architecture;
  std::string_view why;
};

std::span<const Family> registered_families();
std::span<const RefusedFamily> refused_families();

// "MistralModel", as checkpoints without an output head are called, is MistralForCausalLM. For an
// unknown architecture, returns an error that lists the known ones or says why it is not supported.
Result<const Family*> find_family(std::string_view architecture,
                                  std::span<const Family> families = registered_families());

// One loader per family and config spelling.
LoadFamily load_deepseek_v2;
LoadFamily load_deepseek_v3;
LoadFamily load_deepseek_v32;
LoadFamily load_ernie4_5;
LoadFamily load_ernie4_5_moe;
LoadFamily load_exaone4;
LoadFamily load_gemma2;
LoadFamily load_gemma3;
LoadFamily load_gemma4;
LoadFamily load_glm4;
LoadFamily load_glm4_moe;
LoadFamily load_glm4_moe_lite;
LoadFamily load_glm_moe_dsa;
LoadFamily load_gpt_oss;
LoadFamily load_granite;
LoadFamily load_granite_hybrid;
LoadFamily load_granite_moe;
LoadFamily load_hunyuan_dense;
LoadFamily load_hunyuan_moe;
LoadFamily load_hunyuan_v3;
LoadFamily load_kimi_linear;
LoadFamily load_lfm2;
LoadFamily load_lfm2_moe;
LoadFamily load_ling2;
LoadFamily load_ling2_5;
LoadFamily load_ling3;
LoadFamily load_ling3_saved;
LoadFamily load_llama;
LoadFamily load_llama4;
LoadFamily load_longcat_flash;
LoadFamily load_minimax_m2;
LoadFamily load_minimax_m3;
LoadFamily load_ministral3;
LoadFamily load_mistral;
LoadFamily load_mistral3;
LoadFamily load_mistral4;
LoadFamily load_mixtral;
LoadFamily load_nemotron_h;
LoadFamily load_olmo2;
LoadFamily load_olmo3;
LoadFamily load_phi3;
LoadFamily load_qwen2;
LoadFamily load_qwen3;
LoadFamily load_qwen3_5;
LoadFamily load_qwen3_5_moe;
LoadFamily load_qwen3_moe;
LoadFamily load_qwen3_next;
LoadFamily load_seed_oss;
LoadFamily load_smollm3;
LoadFamily load_solar_open;

}  // namespace banyan
