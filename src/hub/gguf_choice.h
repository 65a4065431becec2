// Selects the GGUF files of a repository that make up the requested model. Stateless; thread-safe.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "banyan/status.h"

namespace banyan {

// A single file, or the parts of a split one.
struct GgufModel {
  std::string name;          // "BF16/Nano-BF16": without part number and ".gguf"
  std::string quantization;  // suffix of the name: "Q4_K_M", "UD-Q4_K_XL"; "" if there is none
  std::vector<std::string> files;  // ordered by part number
  bool whole = true;               // no part is missing

  // What distinguishes it from the others: its quantization, else its file name.
  const std::string& label() const { return quantization.empty() ? files.front() : quantization; }
};

// Groups the files of a repository into models, by name. Skips image projectors (mmproj),
// importance matrices (imatrix) and names that are not plain paths.
std::vector<GgufModel> gguf_models(const std::set<std::string>& files);

// Finds the model that `tag` names, ignoring case: a file with or without ".gguf", a quantization,
// or any other suffix of a name or folder. Without a tag: Q4_K_M, else Q4_0, else Q8_0, else the
// first supported one.
//
// Errors name `repository` and list its models. kNotFound: no such model; kInvalidArgument:
// ambiguous; kCorrupt: parts are missing; kUnsupported: no GGUF files.
Result<GgufModel> choose_gguf(const std::set<std::string>& files, std::string_view tag,
                              std::string_view repository);

// Whether the quantization in a file name is supported, judging by the name.
bool is_known_quantization(std::string_view quantization);

// Whether the files include a model in Hugging Face's layout.
bool has_safetensors(const std::set<std::string>& files);

}  // namespace banyan
