// What the Ling and Ring families share (their configs say "bailing"): the MoE and its tensor
// names, and, for the hybrids Ling 2.5 and Ling 3, everything but the recurrence.
#pragma once

#include "models/config/router.h"
#include "models/hybrid.h"

namespace banyan {

// Defaults for missing keys, and settings that config.json does not have.
struct LingMoeDefaults {
  RouterGroups groups = {};
  double scale = 1;
  int64_t dense_layers = 0;
  bool normalises_one = false;  // with top_k 1, the expert's weight is normalised to 1, then scaled
};

// Fills in moe, moe_layers, intermediate and the attention scope ("attention"). Marks keys as read
// that no Ling model uses in its computation. Errors are collected in `config`.
void read_ling_moe(const ConfigFile& config, SparseConfig& c, const LingMoeDefaults& defaults = {});

// Defaults for missing keys.
struct LingDefaults {
  double theta = 600000;
  LingMoeDefaults moe = {};
};

// Reads everything but the recurrence. Errors are collected in `config`.
HybridConfig read_ling_hybrid(const ConfigFile& config, Builder b,
                              const LingDefaults& defaults = {});

}  // namespace banyan
