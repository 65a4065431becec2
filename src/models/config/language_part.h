// The language model of a checkpoint that also sees or hears.
#pragma once

#include <string_view>

#include "weights/builder.h"
#include "weights/files/config_file.h"

namespace banyan {

struct LanguagePart {
  ConfigFile config;       // what config.json says of it
  std::string_view scope;  // of its tensors, save the head: "model.language_model"
};

// Of a checkpoint with a `text_config`, whose other parts and their tensors below
// `model.visual` are left out: images are refused where requests are read. Others are a language
// model as they stand.
LanguagePart read_language_part(const ConfigFile& config, const Builder& b);

}  // namespace banyan
