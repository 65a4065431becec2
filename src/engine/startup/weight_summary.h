// Summarises how a model's matrices are stored in the checkpoint and in memory, one line per kind.
#pragma once

#include <span>
#include <vector>

#include "banyan/engine.h"
#include "weights/builder.h"

namespace banyan {

// In order of first appearance.
std::vector<WeightSummary> summarise_weights(std::span<const MatrixRecord> matrices);

}  // namespace banyan
