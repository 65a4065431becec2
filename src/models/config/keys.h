// Checks the keys of config.json that no family has read. Some have no effect on the computation;
// others ask for something we do not implement. keys.cpp lists both kinds, collected from published
// configs and from transformers.
#pragma once

#include <string>
#include <vector>

#include "weights/files/config_file.h"

namespace banyan {

// Rejects (kUnsupported) unread keys that would change the computation. Errors are collected in
// `config`.
void refuse_variants(const ConfigFile& config);

// Unread keys that are on neither list; the caller warns about them.
std::vector<std::string> unknown_keys(const ConfigFile& config);

}  // namespace banyan
