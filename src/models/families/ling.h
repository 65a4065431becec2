// What the Ling and Ring families share, whose configs call them bailing: the mixture of experts
// and its names; and of Ling 2.5 and Ling 3, which are hybrids, all but the recurrence.
#pragma once

#include "models/config/router.h"
#include "models/hybrid.h"

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

// What a config.json that leaves it out means.
struct LingDefaults {
  double theta = 600000;
  LingMoeDefaults moe = {};
};

// All but the recurrence. Layers beyond the last that predict further tokens are skipped. Problems
// stick to `config`.
HybridConfig read_ling_hybrid(const ConfigFile& config, Builder b,
                              const LingDefaults& defaults = {});

}  // namespace banyan
