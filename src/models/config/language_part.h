// Extracts the language model from a multimodal checkpoint. The encoders are not loaded.
#pragma once

#include <memory>

#include "models/registry.h"
#include "weights/builder.h"
#include "weights/files/config_file.h"

namespace banyan {

struct LanguagePart {
  ConfigFile config;  // the language model's part of config.json
  Builder weights;    // scope that contains its `model` and `lm_head`
};

// The language model of a checkpoint with a `text_config`; other checkpoints are returned
// unchanged. Tensors of encoders and projectors are ignored. Image inputs are rejected when a
// request is parsed.
//
// Published checkpoints keep the language model under `language_model.`. Newer transformers
// releases save it under `model.language_model.` with the head next to it; read_decoder() finds
// that scope.
LanguagePart language_part(const ConfigFile& config, const Builder& b);

// Loads a multimodal checkpoint's language model; `load` is the loader of its text family.
template <LoadFamily* load>
Result<std::unique_ptr<Model>> load_language_part(const ConfigFile& config, Builder b) {
  LanguagePart part = language_part(config, b);
  return load(part.config, part.weights);
}

}  // namespace banyan
