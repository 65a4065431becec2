// A layer of Gemma 4: attention and a dense block with norms around both, experts next to the
// block, and what the token gives the layer besides the stream, each if the model has it.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "models/gqa_decoder.h"
#include "nn/layer_inputs.h"

namespace banyan {

struct Gemma4Config {
  GqaDecoderConfig common;    // attention: of layers with windows
  GqaConfig full;             // of layers without
  std::vector<bool> slides;   // each layer
  int64_t first_sharing = 0;  // from this layer on keys and values are those of earlier ones
  int64_t sharing_width = 1;  // by this much the dense blocks of these are wider
  bool experts = false;
  LayerInputsConfig inputs;  // width 0: none

  const GqaConfig& attention(int64_t layer) const {
    return slides[static_cast<size_t>(layer)] ? common.attention : full;
  }
};

class Gemma4Layer {
 public:
  // `shared`: of the layer whose keys and values this one looks at, if it has none of its own.
  Gemma4Layer(Builder b, const Gemma4Config& c, int64_t index, std::optional<GqaStates> shared)
      : input_begin_(index * c.inputs.width),
        input_width_(c.inputs.width),
        attention_in_(norm_of(b, "input_layernorm", c)),
        attention_out_(norm_of(b, "post_attention_layernorm", c)),
        mlp_in_(norm_of(b, "pre_feedforward_layernorm", c)),
        mlp_out_(norm_of(b, "post_feedforward_layernorm", c)),
        attention_(b / "self_attn", attention_of(c, index, shared)),
        mlp_(b / "mlp", c.inputs.hidden,
             c.common.sparse.intermediate * (shared ? c.sharing_width : 1), false,
             c.common.sparse.glu) {
    if (c.experts) experts_.emplace(b, c);
    if (c.inputs.width > 0) input_.emplace(b, c.inputs);
    std::vector<float> scale = b.host_values("layer_scalar", {1}, 1);
    if (!scale.empty()) scale_ = scale[0];
    if (!shared) return;
    for (const char* part : {"k_proj", "v_proj", "k_norm", "v_norm"}) {
      (b / "self_attn" / part).ignore_scope();  // published files have them
    }
  }

  Tensor operator()(Step& s, Tensor x, const Rotation& rotation, Tensor inputs) const {
    x = add(s, x, attention_out_(s, attention_(s, attention_in_(s, x), rotation)));
    Tensor y = mlp_(s, mlp_in_(s, x));
    if (experts_) y = (*experts_)(s, x, y);
    x = add(s, x, mlp_out_(s, y));
    if (input_) x = add(s, x, (*input_)(s, x, inputs.columns(input_begin_, input_width_)));
    return scale(s, x, scale_);
  }

  GqaStates states() const { return attention_.states(); }

 private:
  // Experts next to the dense block, each with norms of its own.
  struct Experts {
    Experts(Builder b, const Gemma4Config& c)
        : router_in(b / "router" / "norm", c.inputs.hidden, c.inputs.eps, NormWeight::kNone),
          in(norm_of(b, "pre_feedforward_layernorm_2", c)),
          out(norm_of(b, "post_feedforward_layernorm_2", c)),
          dense_out(norm_of(b, "post_feedforward_layernorm_1", c)),
          moe(b, c.common.sparse.moe),
          router_scale(1 / std::sqrt(static_cast<float>(c.inputs.hidden))) {}

    // x, which entered the dense block, and what came of it -> the sum of both kinds
    Tensor operator()(Step& s, Tensor x, Tensor dense) const {
      Tensor chosen_by = scale(s, router_in(s, x), router_scale);
      return add(s, dense_out(s, dense), out(s, moe(s, in(s, x), chosen_by)));
    }

    RmsNorm router_in, in, out, dense_out;
    Moe moe;
    float router_scale;
  };

  static RmsNorm norm_of(const Builder& b, std::string_view name, const Gemma4Config& c) {
    return RmsNorm(b / name, c.inputs.hidden, c.inputs.eps);
  }
  static GqaConfig attention_of(const Gemma4Config& c, int64_t index,
                                std::optional<GqaStates> shared) {
    GqaConfig attention = c.attention(index);
    attention.shared = shared;
    return attention;
  }

  int64_t input_begin_, input_width_;
  RmsNorm attention_in_, attention_out_, mlp_in_, mlp_out_;
  GqaAttention attention_;
  GatedMlp mlp_;
  std::optional<Experts> experts_;
  std::optional<LayerInputBlock> input_;
  float scale_ = 1;
};

}  // namespace banyan
