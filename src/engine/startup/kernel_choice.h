// The kernel table that a model runs on.
#pragma once

#include <span>
#include <string>

#include "banyan/config.h"
#include "kernels/choice/choice.h"
#include "kernels/kernel_table.h"
#include "models/registry.h"
#include "weights/builder.h"

namespace banyan {

struct ModelKernels {
  const KernelTable* table = nullptr;
  std::string reason;  // EngineInfo::kernels_reason
};

// The table that the config names, or the fastest on this machine for the format of the model's
// weights (kernels/choice/choice.h). The first call on an unknown processor may take seconds.
// Engines and ranks that load the same model get the same table.
Result<ModelKernels> kernels_of(const EngineConfig& config, std::span<const Family> families);
// With `kernels` auto, of these choices.
Result<ModelKernels> kernels_among(const KernelChoices& choices, const EngineConfig& config,
                                   std::span<const Family> families);

// The index in kGemmFormats of the format that most of a token's products use.
size_t dominant_format(std::span<const MatrixRecord> matrices);

}  // namespace banyan
