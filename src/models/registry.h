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

struct Family {
  std::string_view architecture;  // as config.json spells it
  // Reads the config, refusing what it does not support, then declares the weights.
  Result<std::unique_ptr<Model>> (*load)(const ConfigFile& config, Builder b);
};

std::span<const Family> registered_families();

// An unknown architecture is an error that lists the known ones.
Result<const Family*> find_family(std::string_view architecture,
                                  std::span<const Family> families = registered_families());

// One per family and spelling of its config.
Result<std::unique_ptr<Model>> load_bailing_hybrid(const ConfigFile& config, Builder b);
Result<std::unique_ptr<Model>> load_bailing_v2(const ConfigFile& config, Builder b);
Result<std::unique_ptr<Model>> load_bailing_v2_5(const ConfigFile& config, Builder b);
Result<std::unique_ptr<Model>> load_bailing_v3(const ConfigFile& config, Builder b);
Result<std::unique_ptr<Model>> load_deepseek_v3(const ConfigFile& config, Builder b);
Result<std::unique_ptr<Model>> load_kimi_linear(const ConfigFile& config, Builder b);
Result<std::unique_ptr<Model>> load_llama(const ConfigFile& config, Builder b);
Result<std::unique_ptr<Model>> load_longcat_flash(const ConfigFile& config, Builder b);
Result<std::unique_ptr<Model>> load_mistral(const ConfigFile& config, Builder b);
Result<std::unique_ptr<Model>> load_qwen2(const ConfigFile& config, Builder b);
Result<std::unique_ptr<Model>> load_qwen3(const ConfigFile& config, Builder b);
Result<std::unique_ptr<Model>> load_qwen3_moe(const ConfigFile& config, Builder b);

}  // namespace banyan
