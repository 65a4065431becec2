// What the Ling and Ring families share, which their configs call bailing: the mixture of experts
// and its names.
#pragma once

#include "models/config/router.h"
#include "models/sparse.h"

namespace banyan {

// What a config.json that leaves it out means, or does not say.
struct LingMoeDefaults {
  RouterGroups groups = {};
  double scale = 1;
  int64_t dense_layers = 0;
  bool normalises_one = false;  // a single chosen expert's weight becomes the scale itself
};

// moe, moe_layers, intermediate; the layers' attention is called "attention". Marks the keys that
// none of the families computes with as read. Problems stick to `config`.
void read_ling_moe(const ConfigFile& config, SparseConfig& c, const LingMoeDefaults& defaults = {});

}  // namespace banyan
