#include "engine/startup/state_identity.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string_view>

#include "base/check.h"

namespace banyan {
namespace {

std::string config_part(const LoadedModel& model) {
  Hasher hasher;
  for (const auto& [key, value] : model.config_values) hasher.text(key).text(value);
  return hasher.finish().hex();
}

std::string weights_part(const LoadedModel& model) {
  return model.weights_digest ? model.weights_digest->hex() : "random numbers 1";
}

// The storage format of each matrix: it determines rounding and arithmetic.
std::string matrices_part(const LoadedModel& model) {
  Hasher hasher;
  for (const MatrixRecord& record : model.matrices) {
    hasher.text(record.form().format->name).number(static_cast<uint64_t>(record.form().group));
    hasher.number(static_cast<uint64_t>(record.matrix.columns)).number(record.parts.size());
    for (const MatrixRecord::Part& part : record.parts) {
      hasher.text(part.name).number(static_cast<uint64_t>(part.rows));
    }
  }
  return hasher.finish().hex();
}

std::string states_part(const LoadedModel& model) {
  Hasher hasher;
  for (const StateSpec& s : model.states) {
    if (s.reach == StateReach::kNone) continue;  // never leaves its sequence
    hasher.text(s.name).text(dtype_name(s.dtype));
    for (int64_t field : {static_cast<int64_t>(s.unit), static_cast<int64_t>(s.reach),
                          s.window_tokens, int64_t{s.lookahead_tokens}, s.heads, s.width, s.split,
                          int64_t{s.tokens_per_row}, int64_t{s.advisory}, int64_t{s.index},
                          int64_t{s.alignment_tokens}, int64_t{s.two_forms}}) {
      hasher.number(static_cast<uint64_t>(field));
    }
  }
  return hasher.finish().hex();
}

// libm functions are not correctly rounded, and their last bits vary between versions and
// processors. Rotations, decays and the portable kernels use them.
std::string math_library_part() {
  Hasher hasher;
  volatile double step = 0.37;  // prevents constant folding
  for (int i = 1; i <= 64; ++i) {
    double x = step * i;
    auto narrow = static_cast<float>(x);
    for (double y : {std::exp(-x), std::exp2(-x), std::log(x), std::pow(10000.0, -x / 24),
                     std::sin(x), std::cos(x)}) {
      hasher.number(std::bit_cast<uint64_t>(y));
    }
    for (float y : {std::exp(-narrow), std::log(narrow), std::log1p(narrow), std::tanh(narrow),
                    std::sin(narrow), std::cos(narrow)}) {
      hasher.number(std::bit_cast<uint32_t>(y));
    }
  }
  return hasher.finish().hex();
}

std::string_view byte_order() {
  return std::endian::native == std::endian::little ? "little" : "big";
}

}  // namespace

StateDigest StateIdentity::digest() const {
  Hasher hasher;
  for (const auto& [name, value] : parts) hasher.text(name).text(value);
  return StateDigest(hasher.finish());
}

StateIdentity identify_states(const EngineConfig& config, const LoadedModel& model,
                              const KernelTable& kernels) {
  bool two_forms = std::ranges::any_of(model.states, &StateSpec::two_forms);
  auto arithmetic = [&] {
    return fmt::format("{}, revision {}", kernels.name, kArithmeticRevision);
  };
  StateIdentity identity = {
      .parts = {
          {"format", "1"},
          {"byte order", std::string(byte_order())},
          {"architecture", model.model->info().architecture},
          {"weights", weights_part(model)},
          {"config", config_part(model)},
          {"matrices", matrices_part(model)},
          {"states", states_part(model)},
          {"kernels", arithmetic()},
          {"math library", math_library_part()},
          {"mla_prefill", config.mla_prefill},
          {"generated state", two_forms && config.reuse_generated_state ? "reused" : "exact"},
          {"page size", std::to_string(config.page_size_tokens)},
      }};
  if (config.moba_block_tokens > 0 || config.moba_top_k > 0) {
    identity.parts.emplace_back(
        "moba", fmt::format("{} x {}", config.moba_block_tokens, config.moba_top_k));
  }
  if (config.moba_decode) {
    identity.parts.emplace_back("moba decode", *config.moba_decode ? "blocks" : "all keys");
  }
  return identity;
}

}  // namespace banyan
