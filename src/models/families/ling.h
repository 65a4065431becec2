// What Ling 2.5 and Ling 3 have in common, which their configs call bailing_hybrid.
#pragma once

#include "models/families/ling_moe.h"
#include "models/hybrid.h"

namespace banyan {

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
