#include "engine/startup/kernel_choice.h"

#include <algorithm>
#include <array>
#include <mutex>

#include "base/check.h"
#include "base/error.h"
#include "base/log.h"
#include "base/signed.h"
#include "base/threads/thread_pool.h"
#include "kernels/select.h"
#include "models/load.h"

namespace banyan {
namespace {

// The format of a model that is not loaded yet, found without reading weights.
Result<size_t> find_format(const EngineConfig& config, std::span<const Family> families) {
  EngineConfig dry = config;
  dry.state_digest = false;
  ThreadPool threads(1);
  LoadedModel model = TRY(load_model(dry, {.kernels = TRY(select_kernels("auto")),
                                           .threads = &threads,
                                           .dry = true,
                                           .families = families}));
  return dominant_format(model.matrices);
}

}  // namespace

size_t dominant_format(std::span<const MatrixRecord> matrices) {
  std::array<double, kGemmFormats.size()> products = {};
  for (const MatrixRecord& record : matrices) {
    auto it = std::ranges::find(kGemmFormats, record.form().format->name, &GemmFormat::name);
    CHECK(it != kGemmFormats.end(), "{}", record.form().format->name);
    int64_t rows = 0;
    for (const MatrixRecord::Part& part : record.parts) rows += part.rows;
    at(products, it - kGemmFormats.begin()) += record.share * (rows * record.matrix.columns);
  }
  return as_size(std::ranges::max_element(products) - products.begin());
}

Result<ModelKernels> kernels_among(const KernelChoices& choices, const EngineConfig& config,
                                   std::span<const Family> families) {
  size_t format = choices.same_for_all() ? 0 : TRY(find_format(config, families));
  std::string reason = choices.reasons[format];
  if (!choices.same_for_all()) {
    reason = fmt::format("for weights of {}, {}", kGemmFormats[format].name, reason);
  }
  return ModelKernels{TRY(select_kernels(choices.tables[format])), std::move(reason)};
}

Result<ModelKernels> kernels_of(const EngineConfig& config, std::span<const Family> families) {
  if (config.kernels == "auto") {
    if (std::string_view name = kernels_left_out(); !name.empty()) {
      static std::once_flag said;  // not once per rank and draft model
      std::call_once(said, [&] { spdlog::warn("kernels: {}", left_out_message(name)); });
    }
    return kernels_among(choose_kernels(this_machine()), config, families);
  }
  return ModelKernels{TRY(select_kernels(config.kernels)), "asked for"};
}

}  // namespace banyan
