// Reads the rotary embedding of config.json in both of its spellings: `rope_theta` next to
// `rope_scaling`, and transformers 5's `rope_parameters`.
#pragma once

#include <string_view>

#include "nn/rope.h"
#include "weights/files/config_file.h"

namespace banyan {

// The part of a head that rotates, next to the rotation's parameters or among them; 1 where it is
// left out, or `fallback`. What it is a part of differs between families.
double read_partial_rotary_factor(const ConfigFile& config, double fallback = 1);

// Parameters for each type of layers, as transformers 5 may save them, must be the same for all.
// `rotary_dim` elements of a head turn; `context_tokens` is max_position_embeddings. Problems stick
// to `config`.
RopeConfig read_rope(const ConfigFile& config, int64_t rotary_dim, int64_t context_tokens,
                     double theta_default = 10000);

// The rotation of layers of one type, "full_attention" or "sliding_attention", which may differ
// from that of others. Where parameters are not given for types, what is asked of scaling is meant
// for full attention alone.
RopeConfig read_rope_of_type(const ConfigFile& config, std::string_view type, int64_t rotary_dim,
                             int64_t context_tokens, double theta_default);

// The context that a YaRN checkpoint's factor stretches its original one to; 0 for other types.
int64_t stretched_context_tokens(const RopeConfig& rope);

}  // namespace banyan
