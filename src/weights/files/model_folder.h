// Whether a path leads to a folder that may hold a model.
#pragma once

#include <string>

#include "banyan/status.h"

namespace banyan {

// kNotFound: nothing is there. kUnsupported: a file, by what it is, and what to give instead.
Status check_model_folder(const std::string& path);

// The same, and a GGUF file is fine too: its metadata says all that a folder does.
Status check_model_path(const std::string& path);

}  // namespace banyan
