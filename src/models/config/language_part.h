// The language model of a checkpoint that also sees or hears.
#pragma once

#include <memory>

#include "models/registry.h"
#include "weights/builder.h"
#include "weights/files/config_file.h"

namespace banyan {

struct LanguagePart {
  ConfigFile config;  // what config.json says of it
  Builder weights;    // the scope of its `model` and `lm_head`
};

// Of a checkpoint with a `text_config`. Its other parts, and their tensors, are left out: images
// are refused where requests are read. Others are a language model as they stand.
//
// Published checkpoints have the language model under `language_model.`; transformers 5 saves it
// under `model.language_model.` and the head next to that, a scope that read_decoder() finds.
LanguagePart language_part(const ConfigFile& config, const Builder& b);

// The loader of such a checkpoint, where `load` is that of its language model.
template <LoadFamily* load>
Result<std::unique_ptr<Model>> load_language_part(const ConfigFile& config, Builder b) {
  LanguagePart part = language_part(config, b);
  return load(part.config, part.weights);
}

}  // namespace banyan
