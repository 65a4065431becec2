// A decoder whose layers each have a mixer (attention or recurrence) and a feed-forward block, both
// residual. Nearly every family is one. Differences between families and layers are data.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "models/decoder.h"
#include "models/ffn.h"
#include "models/mixer.h"
#include "models/prediction.h"
#include "nn/layer_inputs.h"
#include "nn/residual.h"
#include "weights/files/config_file.h"

namespace banyan {

// Names of the norms around the blocks of a layer.
struct LayerNorms {
  BlockNorms mixer = {.in = "input_layernorm"};
  BlockNorms ffn = {.in = "post_attention_layernorm"};
};

struct LayerConfig {
  // Either may be missing (Nemotron-H).
  std::optional<MixerConfig> mixer;
  std::optional<FfnConfig> ffn;
  // Scopes within the layer; "" if the block's tensors are directly in the layer's scope.
  std::string_view mixer_scope = "self_attn", ffn_scope = "mlp";
  int rope = 0;                    // 0: DecoderConfig::rope; i: the ith of other_ropes
  std::optional<int64_t> keys_of;  // the earlier layer whose KV cache it shares
};

// Settings that all layers share.
struct LayerStyle {
  LayerNorms norms = {};
  float residual_scale = 1;     // factor on each block's output
  LayerInputsConfig inputs;     // per-layer inputs in addition to the stream; width 0: none
  std::string_view scale = "";  // name of a factor on the layer's output; "": none
};

class DecoderLayer {
 public:
  DecoderLayer(Builder b, const DecoderConfig& decoder, const LayerStyle& style,
               const LayerConfig& c);

  // Residual stream x [T, hidden] -> the stream after this layer. `input` [T, width] is this
  // layer's per-layer input, if the style has them.
  Tensor operator()(Step& s, Tensor x, const Rotation& rotation, Tensor input = {}) const {
    if (mixer_) x = (*mixer_)(s, x, rotation);
    if (ffn_) x = (*ffn_)(s, x);
    if (input_) x = (*input_)(s, x, input);
    return scaled_ ? scale(s, x, scale_) : x;
  }

  // The KV cache of its attention, which later layers may share.
  GqaStates states() const { return mixer_ ? mixer_->block().states() : GqaStates{}; }

 private:
  std::optional<Residual<Mixer>> mixer_;
  std::optional<Residual<Ffn>> ffn_;
  std::optional<Residual<LayerInputBlock>> input_;
  bool scaled_;
  float scale_ = 1;
};

struct LayeredDecoderConfig {
  DecoderConfig decoder;
  int64_t context_tokens = 0;
  LayerStyle style = {};
  std::vector<LayerConfig> layers;
  std::optional<LayerConfig> prediction;  // the MTP layer, if any
  PredictionNames prediction_names;
};

// Reports any config errors, else builds the model.
Result<std::unique_ptr<Model>> make_layered_decoder(const ConfigFile& config, Builder b,
                                                    const LayeredDecoderConfig& said);

}  // namespace banyan
