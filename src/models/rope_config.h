// Reads the rotary embedding of config.json in both of its spellings: `rope_theta` beside
// `rope_scaling`, and transformers 5's `rope_parameters`.
#pragma once

#include "nn/rope.h"
#include "weights/config_file.h"

namespace banyan {

// `rotary_dim` elements of a head turn; `context_tokens` is max_position_embeddings. Problems stick
// to `config`.
RopeConfig read_rope(const ConfigFile& config, int64_t rotary_dim, int64_t context_tokens,
                     double theta_default = 10000);

// The context that a YaRN checkpoint's factor stretches its original one to; 0 for other types.
int64_t stretched_context_tokens(const RopeConfig& rope);

}  // namespace banyan
