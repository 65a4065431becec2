// A decoder whose layers are a mixer of positions and a feed-forward block, each a block of the
// residual stream: nearly every family. What differs between families, and between the layers of
// one, is data.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "models/decoder.h"
#include "models/ffn.h"
#include "models/mixer.h"
#include "nn/layer_inputs.h"
#include "nn/residual.h"
#include "weights/files/config_file.h"

namespace banyan {

// Of the blocks of each layer.
struct LayerNorms {
  BlockNorms mixer = {.in = "input_layernorm"};
  BlockNorms ffn = {.in = "post_attention_layernorm"};
};

struct LayerConfig {
  // One of them may be missing (Nemotron-H).
  std::optional<MixerConfig> mixer;
  std::optional<FfnConfig> ffn;
  // Names in the layer; "" for a block whose parts are in the layer itself.
  std::string_view mixer_scope = "self_attn", ffn_scope = "mlp";
  int rope = 0;  // 0: it turns as DecoderConfig::rope says, i: as the ith of other_ropes
  std::optional<int64_t> keys_of;  // the earlier layer whose keys and values it reads, if one's
};

// What is the same in all layers.
struct LayerStyle {
  LayerNorms norms = {};
  float residual_scale = 1;     // of what a block adds
  LayerInputsConfig inputs;     // what the token gives a layer besides the stream; width 0: nothing
  std::string_view scale = "";  // the name of a factor on what leaves the layer; "": none
};

class DecoderLayer {
 public:
  DecoderLayer(Builder b, const DecoderConfig& decoder, const LayerStyle& style,
               const LayerConfig& c);

  // The residual stream x [T, hidden] before the layer -> after it. `input` [T, width] where the
  // style has any.
  Tensor operator()(Step& s, Tensor x, const Rotation& rotation, Tensor input = {}) const {
    if (mixer_) x = (*mixer_)(s, x, rotation);
    if (ffn_) x = (*ffn_)(s, x);
    if (input_) x = (*input_)(s, x, input);
    return scaled_ ? scale(s, x, scale_) : x;
  }

  // Where its attention keeps keys and values.
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
  // The layer after these, if it predicts a further token, and the name of its last norm.
  std::optional<LayerConfig> prediction;
  std::string_view prediction_norm = "";
};

// Checks that reading went well and builds the model.
Result<std::unique_ptr<Model>> make_layered_decoder(const ConfigFile& config, Builder b,
                                                    const LayeredDecoderConfig& said);

}  // namespace banyan
