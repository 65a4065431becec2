#include "nn/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.h"
#include "base/signed.h"

namespace banyan {
namespace {

constexpr double kTwoPi = 2 * std::numbers::pi;

// Llama 3.1: divides frequencies by `factor` where the wavelength exceeds the original context /
// low factor, and keeps them below the original context / high factor. In between it interpolates.
// Llama 4 has equal factors, so nothing in between.
float llama3_frequency(float frequency, const RopeConfig& c) {
  auto wavelength = static_cast<float>(kTwoPi) / frequency;
  auto context = static_cast<float>(c.original_context_tokens);
  auto low = static_cast<float>(c.low_frequency_factor);
  auto high = static_cast<float>(c.high_frequency_factor);
  auto stretched = frequency / static_cast<float>(c.factor);
  if (wavelength < context / high) return frequency;
  if (wavelength >= context / low) return stretched;
  float smooth = (context / wavelength - low) / (high - low);
  return (1 - smooth) * stretched + smooth * frequency;
}

// The pair that completes `rotations` turns within the original context.
double yarn_pair(double rotations, const RopeConfig& c) {
  return c.rotary_dim * std::log(c.original_context_tokens / (rotations * kTwoPi)) /
         (2 * std::log(c.theta));
}

void apply_yarn(std::vector<float>& frequencies, const RopeConfig& c) {
  double low = yarn_pair(c.beta_fast, c), high = yarn_pair(c.beta_slow, c);
  if (c.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(c.rotary_dim - 1));
  if (low == high) high += 0.001;
  for (size_t i = 0; i < frequencies.size(); ++i) {
    double ramp = std::clamp((i - low) / (high - low), 0.0, 1.0);
    auto stretch = static_cast<float>(ramp);
    float interpolated = frequencies[i] / static_cast<float>(c.factor);
    frequencies[i] = interpolated * stretch + frequencies[i] * (1 - stretch);
  }
}

}  // namespace

std::vector<float> inverse_frequencies(const RopeConfig& c) {
  CHECK(c.rotary_dim % 2 == 0, "{}", c.rotary_dim);
  std::vector<float> frequencies = filled(c.rotary_dim / 2, 0.0f);
  for (size_t i = 0; i < frequencies.size(); ++i) {
    double exponent = static_cast<double>(2 * i) / c.rotary_dim;
    frequencies[i] = 1 / std::pow(c.theta, exponent);
  }
  switch (c.type) {
    case RopeType::kDefault:
      break;
    case RopeType::kLinear:
      for (float& f : frequencies) f /= static_cast<float>(c.factor);
      break;
    case RopeType::kLlama3:
      for (float& f : frequencies) f = llama3_frequency(f, c);
      break;
    case RopeType::kYarn:
      apply_yarn(frequencies, c);
      break;
    case RopeType::kProportional: {
      auto rotating = as_size(c.proportion * c.rotary_dim / 2);
      for (size_t i = rotating; i < frequencies.size(); ++i) frequencies[i] = 0;
      break;
    }
  }
  return frequencies;
}

double yarn_attention_factor(double factor, double mscale) {
  return factor <= 1 ? 1 : 0.1 * mscale * std::log(factor) + 1;
}

}  // namespace banyan
