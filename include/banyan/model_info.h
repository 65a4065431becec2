// What is known of a model before any engine runs it: its shape, and what its weights come to.
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
  std::vector<LayerInfo> layers;
  // Multiplications and additions of attention for one token per earlier token that it looks at.
  int64_t attention_flops_per_key = 0;
  int64_t prompt_attention_flops_per_key = 0;  // of a prompt's tokens, where it differs; or 0
};

struct WeightCounts {
  int64_t tensors = 0;           // in the checkpoint
  int64_t parameters_total = 0;  // a tied output head counts once
  // That one token passes through, embedding rows left out: on average under even routing, and the
  // least and most where some experts compute nothing.
  int64_t parameters_active = 0;
  int64_t parameters_active_min = 0, parameters_active_max = 0;
  int64_t weight_bytes = 0;           // in memory, as packed
  int64_t weight_bytes_streamed = 0;  // read by a step of one token, on average
};

}  // namespace banyan
