// Mixture of block attention (MoBA): its settings in config.json and in options.
#pragma once

#include <vector>

#include "models/layered_decoder.h"
#include "weights/files/config_file.h"

namespace banyan {

// The settings of each layer, from `moba_block_size`, `moba_topk`, `moba_layer_freq` and
// `use_moba_decode`; empty if config.json has none of them. The first three are required together.
// Errors are collected in `config`.
//
// moba_layer_freq is a list with 0 or 1 for each layer, or a number f: every fth layer attends to
// all keys.
std::vector<MobaShape> read_moba(const ConfigFile& config, int64_t layers);

// Applies the options of the load: they override the sizes in layers that select blocks, and
// whether generated tokens select. In a model without such layers, the sizes make all suitable
// layers select. Refuses (kInvalidArgument) only one of the two sizes for such a model, and
// (kUnsupported) more blocks per context than a step has room to score.
Status choose_blocks(const Builder& b, LayeredDecoderConfig& c);

}  // namespace banyan
