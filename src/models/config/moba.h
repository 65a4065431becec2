// Mixture of block attention (MoBA): what config.json says of it, and what options do.
#pragma once

#include <vector>

#include "models/layered_decoder.h"
#include "weights/files/config_file.h"

namespace banyan {

// Of each layer, by `moba_block_size`, `moba_topk`, `moba_layer_freq` and `use_moba_decode`; empty
// if config.json has none of them. The first three stand or fall together. Problems stick to
// `config`.
//
// moba_layer_freq is a list with 0 or 1 for each layer, or f: every fth layer attends to all keys.
std::vector<MobaShape> read_moba(const ConfigFile& config, int64_t layers);

// Lets the options of the load override the sizes of the layers that select blocks; or of a model
// without any, make all layers select that can. Refuses (kInvalidArgument) one size of such a model
// without the other, and (kUnsupported) more blocks in the context than a step has room to score.
Status choose_blocks(const Builder& b, LayeredDecoderConfig& c);

}  // namespace banyan
