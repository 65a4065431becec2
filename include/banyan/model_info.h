// What is known about a model without running it: its shape and the size of its weights.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace banyan {

struct LayerInfo {
  std::string mixer;  // "gqa", "gqa, window 4096"
  std::string ffn;    // "dense"
};

struct ModelInfo {
  std::string architecture;  // "LlamaForCausalLM"
  int64_t vocabulary = 0;
  int64_t hidden = 0;  // width of the residual stream
  int64_t context_length_tokens = 0;
  bool generates = true;  // false: the checkpoint has no output head; it computes embeddings only
  std::vector<LayerInfo> layers;
  // Multiplications and additions of attention per token and attended key.
  int64_t attention_flops_per_key = 0;
  int64_t prompt_attention_flops_per_key = 0;  // the same in prefill, if different; else 0
  // For layers in which a token attends to chosen keys: their share of attention_flops_per_key, the
  // largest number of chosen keys, and the cost of choosing per earlier position, summed over these
  // layers.
  int64_t selected_flops_per_key = 0;
  int64_t selected_keys = 0;  // 0: no such layers
  double index_bytes_per_key = 0, index_flops_per_key = 0;
  int64_t index_top_k = 0;  // tokens that an index of tokens chooses; 0: no layer has one
};

struct WeightCounts {
  int64_t tensors = 0;           // tensors in the checkpoint
  int64_t parameters_total = 0;  // a tied output head counts once
  // Parameters used per token, without embedding rows: the mean under even routing, and the least
  // and most where some experts compute nothing.
  int64_t parameters_active = 0;
  int64_t parameters_active_min = 0, parameters_active_max = 0;
  int64_t weight_bytes = 0;           // in memory, as packed
  int64_t weight_bytes_streamed = 0;  // read by a step with one token, on average
};

}  // namespace banyan
