// Rotary position embedding: how fast each pair of a head's elements turns with the position.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/rowwise.h"
#include "weights/builder.h"

namespace banyan {

enum class RopeType : uint8_t {
  kDefault,
  kLinear,  // all frequencies divided by `factor`
  kLlama3,  // long wavelengths divided by `factor`, with a smooth transition
  kYarn,    // frequencies blended between interpolated and kept (Peng et al., arXiv:2309.00071)
  kProportional,  // the first pairs turn as they would if all did, the others do not (Gemma 4)
};

struct RopeConfig {
  RopeType type = RopeType::kDefault;
  int64_t rotary_dim = 0;  // elements of a head that turn
  double theta = 10000;
  double factor = 1;
  double proportion = 1;               // kProportional: of the pairs, those that turn
  double original_context_tokens = 0;  // kLlama3, kYarn
  double low_frequency_factor = 1;     // kLlama3
  double high_frequency_factor = 4;
  double beta_fast = 32;  // kYarn
  double beta_slow = 1;
  bool truncate = true;
  double attention_factor = 1;  // on cos and sin both
  double query_beta = 0;        // of queries by position, see PositionScale; Llama 4's
  double score_factor = 1;      // what YaRN's mscale_all_dim makes of attention scores, in MLA

  bool operator==(const RopeConfig&) const = default;
};

// One frequency per pair, in the order of Hugging Face's `inv_freq`.
std::vector<float> inverse_frequencies(const RopeConfig& config);

// YaRN's attention scale where the checkpoint gives none: 0.1 m ln(factor) + 1.
double yarn_attention_factor(double factor, double mscale = 1);

class Rope {
 public:
  Rope(Builder b, const RopeConfig& config)
      : inverse_frequencies_(b.constant({config.rotary_dim / 2}, inverse_frequencies(config))),
        attention_factor_(static_cast<float>(config.attention_factor)) {}

  // The rotation of this step's rows; layers of one kind share it.
  Rotation operator()(Step& s) const {
    return rope_angles(s, inverse_frequencies_, attention_factor_);
  }

 private:
  Tensor inverse_frequencies_;  // [pairs]
  float attention_factor_;
};

}  // namespace banyan
