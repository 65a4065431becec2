// A residual block with optional norms before and after it:
//
//   x + scale * out(block(in(x)))
//
// Llama has only `in` (pre-norm), OLMo 2 only `out` (post-norm), Gemma both (sandwich norm);
// Granite has a scale. A layer is a sequence of such blocks. A block whose result is added later,
// such as LongCat's shortcut, adds it to the stream itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "nn/basic.h"

namespace banyan {

// Settings that all blocks of a model share.
struct ResidualConfig {
  int64_t hidden = 0;
  float eps = 0;  // of the norms
  NormWeight norm_weight = NormWeight::kPlain;
  float scale = 1;  // factor on the block's output
};

// Names of a block's norms in its layer; "": none.
struct BlockNorms {
  std::string_view in = "", out = "";
};

template <class Block>
class Residual {
 public:
  // `b` is the layer's scope, which contains the norms.
  Residual(const Builder& b, const ResidualConfig& c, const BlockNorms& norms, Block block)
      : hidden_(c.hidden),
        in_(norm_of(b, c, norms.in)),
        out_(norm_of(b, c, norms.out)),
        scale_(c.scale),
        block_(std::move(block)) {}

  // Residual stream x [T, hidden] and the block's other arguments -> the updated stream, [T,
  // hidden].
  template <class... More>
  Tensor operator()(Step& s, Tensor x, const More&... more) const {
    x.check_matrix(hidden_);
    Tensor y = block_(s, in_ ? (*in_)(s, x) : x, more...);
    if (out_) y = (*out_)(s, y);
    return add(s, x, scale_ == 1 ? y : scale(s, y, scale_));
  }

  const Block& block() const { return block_; }

 private:
  static std::optional<RmsNorm> norm_of(const Builder& b, const ResidualConfig& c,
                                        std::string_view name) {
    if (name.empty()) return std::nullopt;
    return RmsNorm(b / name, c.hidden, c.eps, c.norm_weight);
  }

  int64_t hidden_;
  std::optional<RmsNorm> in_, out_;
  float scale_;
  Block block_;
};

}  // namespace banyan
