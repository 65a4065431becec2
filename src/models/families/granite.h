// What Granite's mixtures of experts have in common.
#pragma once

#include "models/sparse.h"

namespace banyan {

// Names of the gated blocks that are no experts.
GatedMlpNames granite_block_names(const Builder& b);

// Experts in all layers, each next to a shared block of `sparse.intermediate` columns; 0: none.
void read_granite_experts(const ConfigFile& config, SparseConfig& sparse);

}  // namespace banyan
