#include "engine/drafters/draft_filter.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "base/signed.h"
#include "weights/files/safetensors.h"

namespace banyan {
namespace {

constexpr int64_t kInputs = 3, kHiddenMax = 1024;
// Logarithms of smaller probabilities are cut off, and so are later positions.
constexpr double kProbabilityMin = 1e-6;
constexpr int64_t kPositionMax = 16;

Result<std::vector<float>> read_tensor(const SafetensorsFile& file, std::string_view name,
                                       std::vector<int64_t> shape) {
  const TensorInfo* tensor = file.find(name);
  if (tensor == nullptr) {
    return invalid_argument("{}: a draft filter has a tensor \"{}\"", file.path(), name);
  }
  if (tensor->dtype != DType::kF32 || tensor->shape != shape) {
    return invalid_argument("{}: \"{}\" is {} of shape [{}]; a draft filter's is F32 of [{}]",
                            file.path(), name, dtype_name(tensor->dtype),
                            fmt::join(tensor->shape, ", "), fmt::join(shape, ", "));
  }
  std::vector<float> values(tensor->bytes.size() / sizeof(float));
  TRY(file.read(*tensor, 0, std::as_writable_bytes(std::span(values))));
  if (!std::ranges::all_of(values, [](float x) { return std::isfinite(x); })) {
    return corrupt("{}: \"{}\" has values that are no numbers", file.path(), name);
  }
  return values;
}

}  // namespace

Result<std::shared_ptr<const DraftFilter>> DraftFilter::load(const std::string& path) {
  SafetensorsFile file = TRY(SafetensorsFile::open(path));
  const TensorInfo* bias = file.find("0.bias");
  int64_t hidden = bias != nullptr && bias->shape.size() == 1 ? bias->shape[0] : 1;
  if (hidden < 1 || hidden > kHiddenMax) {
    return invalid_argument("{}: a draft filter has 1 to {} hidden units, not {}", path, kHiddenMax,
                            hidden);
  }
  DraftFilter filter;
  filter.hidden_ = TRY(read_tensor(file, "0.weight", {hidden, kInputs}));
  filter.hidden_bias_ = TRY(read_tensor(file, "0.bias", {hidden}));
  filter.out_ = TRY(read_tensor(file, "2.weight", {1, hidden}));
  filter.bias_ = TRY(read_tensor(file, "2.bias", {1})).front();
  return std::make_shared<const DraftFilter>(std::move(filter));
}

double DraftFilter::chance(const DraftToken& token) const {
  auto log_of = [](double chance) {
    return static_cast<float>(std::log(std::clamp(chance, kProbabilityMin, 1.0)));
  };
  std::array<float, kInputs> inputs = {log_of(token.joint), log_of(token.confidence),
                                       static_cast<float>(std::min(token.position, kPositionMax))};
  double out = bias_;
  for (size_t unit = 0; unit < out_.size(); ++unit) {
    float sum = hidden_bias_[unit];
    for (size_t i = 0; i < inputs.size(); ++i) sum += hidden_[unit * inputs.size() + i] * inputs[i];
    out += out_[unit] * std::max(sum, 0.f);
  }
  return 1 / (1 + std::exp(-out));
}

}  // namespace banyan
