// Reads the rotary embedding from config.json in both spellings: `rope_theta` with `rope_scaling`,
// and `rope_parameters` (transformers 5).
#pragma once

#include <string_view>

#include "nn/rope.h"
#include "weights/files/config_file.h"

namespace banyan {

// The rotary fraction of a head, whether it is stored at the top level or among the rope
// parameters. `fallback` if missing. Families differ on what it is a fraction of.
double read_partial_rotary_factor(const ConfigFile& config, double fallback = 1);

// Reads the one rotation that all layers share; parameters per layer type must be identical.
// `rotary_dim` is the number of elements per head that rotate; `context_tokens` is
// max_position_embeddings. Errors are collected in `config`.
RopeConfig read_rope(const ConfigFile& config, int64_t rotary_dim, int64_t context_tokens,
                     double theta_default = 10000);

// Reads the rotation of one layer type, "full_attention" or "sliding_attention". Where the
// parameters are not per layer type, scaling applies only to full attention.
RopeConfig read_rope_of_type(const ConfigFile& config, std::string_view type, int64_t rotary_dim,
                             int64_t context_tokens, double theta_default);

// The context length after YaRN scaling; 0 for other rope types.
int64_t stretched_context_tokens(const RopeConfig& rope);

}  // namespace banyan
