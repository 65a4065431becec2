// What the Ling and Ring families share: the mixture of experts and its names.
#pragma once

#include "models/sparse.h"

namespace banyan {

// moe, moe_layers, intermediate; the layers' attention is called "attention". Marks the keys that
// none of the families computes with as read. Problems stick to `config`.
void read_bailing_moe(const ConfigFile& config, SparseConfig& c);

}  // namespace banyan
