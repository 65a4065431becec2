// A layer that predicts one token further than the model does (MTP, multi-token prediction;
// DeepSeek-AI 2024, arXiv:2412.19437): from the model's hidden state at a position and the
// next token, it computes the hidden state whose logits are those of the token after next. Applied
// again, to its own output and the token that it predicted, it looks one token further.
//
// Its attention keeps states of its own, whose entry for a position is of the hidden state there
// and of the next token, as with peers. So a page that prompts share may have an entry of
// another one's next token in its last row, which costs a draft at most: no token of the output
// depends on these states.
#pragma once

#include <string_view>
#include <utility>

#include "base/check.h"
#include "models/decoder.h"
#include "nn/linear.h"

namespace banyan {

// Names in a checkpoint, below `scope`.
struct PredictionNames {
  std::string_view token_norm = "enorm", hidden_norm = "hnorm";
  std::string_view norm = "final_layernorm";
};

template <class Layer>
class PredictionLayer {
 public:
  // `b` has norms and projection, `norm` the last norm.
  PredictionLayer(Builder b, Builder norm, const DecoderConfig& c, const PredictionNames& names,
                  Layer layer)
      : hidden_(c.hidden),
        token_norm_(b / names.token_norm, c.hidden, c.eps),
        hidden_norm_(b / names.hidden_norm, c.hidden, c.eps),
        join_(b, {{"eh_proj", c.hidden}}, 2 * c.hidden, false),
        layer_(std::move(layer)),
        norm_(norm, c.hidden, c.eps) {}

  // Embeddings of the tokens after the rows' positions, and hidden states after the final norm,
  // both [T, hidden] -> what takes their place for the next token, [T, hidden].
  Tensor operator()(Step& s, Tensor embedded, Tensor hidden, const Rotation& rotation) const {
    embedded.check_matrix(hidden_);
    hidden.check_matrix(hidden_);
    CHECK(embedded.dim(0) == hidden.dim(0), "{} tokens for {} hidden states", embedded.dim(0),
          hidden.dim(0));
    Tensor joined = s.allocate({hidden.dim(0), 2 * hidden_});
    s.copy(token_norm_(s, embedded), joined.columns(0, hidden_));
    s.copy(hidden_norm_(s, hidden), joined.columns(hidden_, hidden_));
    return norm_(s, layer_(s, join_(s, joined), rotation));
  }

 private:
  int64_t hidden_;
  RmsNorm token_norm_, hidden_norm_;
  Linear join_;
  Layer layer_;
  RmsNorm norm_;
};

}  // namespace banyan
