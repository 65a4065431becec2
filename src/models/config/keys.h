// The keys of config.json that no family reads: some change nothing that is computed here, others
// ask for a computation that there is not. Which is which is a list in the source, of what
// published configs and transformers' own have.
#pragma once

#include <string>
#include <vector>

#include "weights/files/config_file.h"

namespace banyan {

// Refuses (kUnsupported) the keys that nobody read and that ask for another computation. Problems
// stick to `config`.
void refuse_variants(const ConfigFile& config);

// Those that nobody read and that no list has either, which is worth a warning.
std::vector<std::string> unknown_keys(const ConfigFile& config);

}  // namespace banyan
