// What a model's matrices are stored as and are in memory, those that are alike in one line.
#pragma once

#include <span>
#include <vector>

#include "banyan/engine.h"
#include "weights/builder.h"

namespace banyan {

// In the order in which a kind first appears.
std::vector<WeightSummary> summarise_weights(std::span<const MatrixRecord> matrices);

}  // namespace banyan
