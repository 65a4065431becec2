// What llama.cpp's converter makes of each family of models, as data: how `general.architecture`
// calls it, what its tensors are called here and there, and which key of config.json a piece of
// metadata was. THE LIST is in the source.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "banyan/status.h"

namespace banyan {

class GgufConfig;

// A module of a layer, "attn_q" of "blk.3.attn_q.weight".
struct GgufName {
  std::string_view theirs, ours;
  bool whole = false;  // ours has no ".weight" or ".bias"
};

// A value "<architecture>.<theirs>", which config.json has as `ours`.
struct GgufKey {
  std::string_view theirs, ours;
};

struct GgufExpertNames {
  std::string_view scope = "mlp";  // in a layer
  std::string_view gate = "gate_proj", up = "up_proj", down = "down_proj";
};

struct GgufArchitecture {
  std::string_view name;
  std::string_view family;              // in config.json's architectures
  std::string_view sparse_family = "";  // of a file with experts; "": they are refused
  // Rows of q and k are stored so that the two elements of a pair that turns lie side by side.
  bool turned = false;
  bool norms_plus_one = false;           // weights of norms are stored more by one
  std::span<const GgufName> names = {};  // before the common ones; also of what is in no layer
  std::span<const GgufKey> keys = {};    // beyond the common ones
  GgufExpertNames experts = {};
  std::string_view bias_key = "attention_bias";  // what says that q, k and v have biases; "": none
  bool latent = false;                           // attention to latents, with sizes of its own
  std::string_view recurrence = "";  // what layer_types call the layers without heads of keys
  void (*rest)(GgufConfig& config) = nullptr;  // what is no copy of one value
};

// kUnsupported: none of the list, which the message has.
Result<const GgufArchitecture*> find_gguf_architecture(std::string_view name,
                                                       std::string_view path);

// What a Hugging Face checkpoint calls a tensor; "" for one that it does not have at all; the name
// itself when it is not known. Of the experts' tensors: the scope that has the experts' numbers.
std::string gguf_tensor_name(const GgufArchitecture& architecture, std::string_view name);

}  // namespace banyan
