// Rotary position embedding (RoPE): rotation frequency of each pair of a head's elements.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/rowwise.h"
#include "weights/builder.h"

namespace banyan {

enum class RopeType : uint8_t {
  kDefault,
  kLinear,        // all frequencies divided by `factor`
  kLlama3,        // long wavelengths divided by `factor`, with a smooth transition
  kYarn,          // blends interpolated and unchanged frequencies (Peng et al., arXiv:2309.00071)
  kProportional,  // only the first pairs rotate, at their usual frequencies (Gemma 4)
};

struct RopeConfig {
  RopeType type = RopeType::kDefault;
  int64_t rotary_dim = 0;  // elements per head that rotate
  double theta = 10000;
  double factor = 1;
  double proportion = 1;               // kProportional: fraction of pairs that rotate
  double original_context_tokens = 0;  // kLlama3, kYarn
  double low_frequency_factor = 1;     // kLlama3
  double high_frequency_factor = 4;
  double beta_fast = 32;  // kYarn
  double beta_slow = 1;
  bool truncate = true;
  double attention_factor = 1;  // factor on cos and sin
  double query_beta = 0;        // scales queries by position, see PositionScale (Llama 4)
  double score_factor = 1;      // factor on MLA's attention scores, from YaRN's mscale_all_dim

  bool operator==(const RopeConfig&) const = default;
};

// One frequency per pair, in the order of Hugging Face's `inv_freq`.
std::vector<float> inverse_frequencies(const RopeConfig& config);

// YaRN's default attention factor: 0.1 m ln(factor) + 1.
double yarn_attention_factor(double factor, double mscale = 1);

class Rope {
 public:
  Rope(Builder b, const RopeConfig& config)
      : inverse_frequencies_(b.constant({config.rotary_dim / 2}, inverse_frequencies(config))),
        attention_factor_(config.attention_factor) {}

  // Rotation angles for the rows of this step, shared by all layers of one kind.
  Rotation operator()(Step& s) const {
    return rope_angles(s, inverse_frequencies_, attention_factor_);
  }

 private:
  Tensor inverse_frequencies_;  // [pairs]
  float attention_factor_;
};

}  // namespace banyan
