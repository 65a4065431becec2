// A multi-token prediction (MTP) layer (DeepSeek-AI 2024, arXiv:2412.19437). From the model's
// hidden state at a position and the next token, it computes a hidden state whose logits predict
// the token after next. Applied to its own output and prediction, it drafts one more token.
//
// Its attention has its own KV cache, whose entry for a position depends on the hidden state there
// and on the next token, as in other engines. So the last row of a page shared between prompts may
// depend on the next token of a different prompt. That can only cost a rejected draft: no output
// token depends on this cache.
#pragma once

#include <string_view>
#include <utility>

#include "base/check.h"
#include "models/decoder.h"
#include "nn/linear.h"

namespace banyan {

// What a checkpoint calls the layer's parts.
struct PredictionNames {
  std::string_view scope = "";  // of norms and projection; "": the layer after the model's last
  std::string_view layer = "";  // scope of the blocks within it; "": the same
  std::string_view token_norm = "enorm", hidden_norm = "hnorm", join = "eh_proj";
  std::string_view norm = "shared_head.norm";  // the final one
};

template <class Layer>
class PredictionLayer {
 public:
  // `b` is the scope of the norms and the projection, `norm` that of the final norm.
  PredictionLayer(Builder b, Builder norm, const DecoderConfig& c, const PredictionNames& names,
                  Layer layer)
      : hidden_(c.hidden),
        token_norm_(b / names.token_norm, c.hidden, c.eps, c.norm_weight),
        hidden_norm_(b / names.hidden_norm, c.hidden, c.eps, c.norm_weight),
        join_(b, {{names.join, c.hidden}}, 2 * c.hidden, false),
        layer_(std::move(layer)),
        norm_(norm, c.hidden, c.eps, c.norm_weight) {}

  // Embeddings of the tokens after the rows' positions and hidden states after the final norm, both
  // [T, hidden] -> hidden states for the next prediction, [T, hidden].
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
