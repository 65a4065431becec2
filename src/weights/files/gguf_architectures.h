// Data on llama.cpp's converter for each model family: its `general.architecture`, the names of its
// tensors on both sides, and the config.json key of each metadata value. THE LIST is in the source.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "banyan/status.h"

namespace banyan {

class GgufConfig;

// A module of a layer, such as "attn_q" in "blk.3.attn_q.weight".
struct GgufName {
  std::string_view theirs, ours;
  bool whole = false;  // our name has no ".weight" or ".bias"
};

// A metadata value "<architecture>.<theirs>", called `ours` in config.json.
struct GgufKey {
  std::string_view theirs, ours;
};

// Keys of routers that choose experts within groups, as DeepSeek's do; several families share them.
inline constexpr std::array kGroupedExpertKeys = {
    GgufKey{"expert_used_count", "num_experts_per_tok"},
    GgufKey{"expert_feed_forward_length", "moe_intermediate_size"},
    GgufKey{"expert_group_count", "n_group"},
    GgufKey{"expert_group_used_count", "topk_group"},
    GgufKey{"expert_weights_norm", "norm_topk_prob"},
    GgufKey{"expert_weights_scale", "routed_scaling_factor"},
};

// `shared` and then `own`.
template <size_t N, size_t M>
consteval std::array<GgufKey, N + M> joined(const std::array<GgufKey, N>& shared,
                                            const std::array<GgufKey, M>& own) {
  std::array<GgufKey, N + M> all;
  std::ranges::copy(shared, all.begin());
  std::ranges::copy(own, all.begin() + N);
  return all;
}

// Stands for the number of an expert in the name of a tensor with those of all experts.
inline constexpr char kGgufExpert = '@';
// Stands for an expert's gate and up in the name of a tensor with the rows of both, gate's first.
inline constexpr char kGgufGateUp = '&';

struct GgufExpertNames {
  std::string_view router = "mlp.gate", scope = "mlp.experts";  // within a layer
  std::string_view gate = "gate_proj", up = "up_proj", down = "down_proj";
};

struct GgufArchitecture {
  std::string_view name;
  std::string_view family;              // as in config.json's architectures
  std::string_view sparse_family = "";  // for a file with experts; "": rejects them
  // Rows of q and k are stored with the two elements of a rotary pair adjacent.
  bool interleaved = false;
  bool norms_plus_one = false;           // norm weights are stored with 1 added
  bool tiled_values = false;             // Gated DeltaNet's value heads: see gguf_rows.h
  bool names_prediction = false;         // layers for prediction are below "mtp"
  bool single_blocks = false;            // a layer is one block; its `rest` says which
  bool mixed_layers = false;             // sliding ones have other sizes; its `rest` reads them
  std::string_view scope = "model";      // of the layers
  std::span<const GgufName> names = {};  // override the common ones; also tensors outside layers
  std::span<const GgufKey> keys = {};    // in addition to the common ones
  GgufExpertNames experts = {};
  std::string_view eps_key = "rms_norm_eps";
  std::string_view bias_key = "attention_bias";  // key that declares biases of q, k and v; "": none
  bool latent = false;                           // latent attention, with its own sizes
  std::string_view recurrence = "";            // layer_types entry of the layers without key heads
  void (*rest)(GgufConfig& config) = nullptr;  // conversions beyond copying one value
};

// kUnsupported if the list has no such architecture; the error includes the list.
Result<const GgufArchitecture*> find_gguf_architecture(std::string_view name,
                                                       std::string_view path);

// The Hugging Face name of a tensor; "" if such checkpoints do not have it; `name` itself if it is
// unknown. With kGgufExpert for tensors of all experts.
std::string gguf_tensor_name(const GgufArchitecture& architecture, std::string_view name);

}  // namespace banyan
