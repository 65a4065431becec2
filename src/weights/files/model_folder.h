// Checks that a path is a folder that may contain a model.
#pragma once

#include <string>

#include "banyan/status.h"

namespace banyan {

// kNotFound: the path does not exist. kUnsupported: a file; names its kind and what to give
// instead.
Status check_model_folder(const std::string& path);

// Also accepts a GGUF file, whose metadata replaces the folder's other files.
Status check_model_path(const std::string& path);

}  // namespace banyan
