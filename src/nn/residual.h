// A block of the residual stream, with the norms that families put before it, after it, or both:
//
//   x + scale * out(block(in(x)))
//
// Llama has `in` alone (pre-norm), OLMo 2 `out` alone (post-norm), Gemma both (sandwich norms),
// Granite a scale. A layer is one such block after the other. What adds a block's result to the
// stream later than that writes its sum by itself, as LongCat's short cut does.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "nn/basic.h"

namespace banyan {

// What all blocks of a model have in common.
struct ResidualConfig {
  int64_t hidden = 0;
  float eps = 0;  // of the norms
  NormWeight norm_weight = NormWeight::kPlain;
  float scale = 1;  // of what a block adds
};

// Names of a block's norms in its layer; "": there is none.
struct BlockNorms {
  std::string_view in = "", out = "";
};

template <class Block>
class Residual {
 public:
  // `b` is the scope of the layer, in which the norms are.
  Residual(const Builder& b, const ResidualConfig& c, const BlockNorms& norms, Block block)
      : hidden_(c.hidden),
        in_(norm_of(b, c, norms.in)),
        out_(norm_of(b, c, norms.out)),
        scale_(c.scale),
        block_(std::move(block)) {}

  // The stream x [T, hidden], and what else the block takes -> the stream after it, [T, hidden].
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
