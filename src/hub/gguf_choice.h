// Which of the GGUF files of a repository make up the model that was asked for.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "banyan/status.h"

namespace banyan {

// One file, or the parts that one was cut into.
struct GgufModel {
  std::string name;                // "BF16/Nano-BF16": without the number of a part and ".gguf"
  std::string quantization;        // as the name ends: "Q4_K_M", "UD-Q4_K_XL"; "" if it does not
  std::vector<std::string> files;  // in the order of their numbers
  bool whole = true;               // all parts are there

  // What tells it from the others: its quantization, else its file.
  const std::string& label() const { return quantization.empty() ? files.front() : quantization; }
};

// The models among the files of a repository, by name. Projectors for images (mmproj), importance
// matrices (imatrix) and names that are not plain paths are not among them.
std::vector<GgufModel> gguf_models(const std::set<std::string>& files);

// The model that `tag` names, in any case: a file, with ".gguf" or without it, a quantization, or
// what else a name or its folder ends with. Without a tag: Q4_K_M, else Q4_0, else Q8_0, else the
// first that can be run. Errors name `repository` and list what is there. kNotFound: no such model;
// kInvalidArgument: several; kCorrupt: parts are missing; kUnsupported: there are no GGUF files.
Result<GgufModel> choose_gguf(const std::set<std::string>& files, std::string_view tag,
                              std::string_view repository);

// Whether tensors of the format that a name states can be read, as far as names tell.
bool is_known_quantization(std::string_view quantization);

// Whether the files hold a model in Hugging Face's own layout.
bool has_safetensors(const std::set<std::string>& files);

}  // namespace banyan
