// A model folder that needs no data: one small layer, seeded random weights, a long context.
#pragma once

#include <string>

#include "banyan/config.h"
#include "support/shared.h"

namespace banyan::test {

constexpr int64_t kTinyVocabulary = 64;
constexpr int64_t kTinyContext = 1 << 18;

// Writes config.json into `folder`, which is all that load_format "dummy" reads.
inline EngineConfig tiny_model(const TemporaryFolder& folder) {
  folder.write("config.json", R"({
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu",
    "vocab_size": 64, "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1,
    "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 262144,
    "rms_norm_eps": 1e-5, "tie_word_embeddings": true, "torch_dtype": "float32"})");
  return {.model_path = folder.path(),
          .load_format = "dummy",
          .threads = 1,
          .page_size_tokens = 16,
          .total_tokens_max = kTinyContext};
}

}  // namespace banyan::test
