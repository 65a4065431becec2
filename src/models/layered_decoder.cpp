#include "models/layered_decoder.h"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/check.h"
#include "base/error.h"
#include "base/signed.h"
#include "models/config/moba.h"

namespace banyan {
namespace {

Builder scope_of(const Builder& layer, std::string_view name) {
  return name.empty() ? layer : layer / name;
}

ModelInfo info_of(const LayeredDecoderConfig& c) {
  ModelInfo info{.vocabulary = c.decoder.vocabulary,
                 .hidden = c.decoder.hidden,
                 .context_length_tokens = c.context_tokens};
  for (const LayerConfig& layer : c.layers) {
    MixerInfo mixer = layer.mixer ? describe(*layer.mixer) : MixerInfo{"none"};
    info.attention_flops_per_key += mixer.flops_per_key;
    info.prompt_attention_flops_per_key += mixer.prompt_flops_per_key;
    if (mixer.selected_keys > 0) {
      info.selected_flops_per_key += mixer.flops_per_key;
      info.selected_keys = std::max(info.selected_keys, mixer.selected_keys);
      info.index_top_k = std::max(info.index_top_k, mixer.index_top_k);
      info.index_bytes_per_key += mixer.index_bytes_per_key;
      info.index_flops_per_key += mixer.index_flops_per_key;
    }
    if (layer.keys_of) mixer.name += ", keys of an earlier layer";
    info.layers.push_back({mixer.name, layer.ffn ? describe(*layer.ffn) : "none"});
  }
  return info;
}

}  // namespace

DecoderLayer::DecoderLayer(Builder b, const DecoderConfig& decoder, const LayerStyle& style,
                           const LayerConfig& c)
    : scaled_(!style.scale.empty()) {
  ResidualConfig residual = residual_of(decoder, style.residual_scale);
  if (c.mixer) {
    mixer_.emplace(b, residual, style.norms.mixer, Mixer(scope_of(b, c.mixer_scope), *c.mixer));
  }
  if (c.ffn) ffn_.emplace(b, residual, style.norms.ffn, Ffn(scope_of(b, c.ffn_scope), *c.ffn));
  if (style.inputs.width > 0) {
    input_.emplace(b, residual, BlockNorms{}, LayerInputBlock(b, style.inputs));
  }
  if (!scaled_) return;
  std::vector<float> scale = b.host_values(style.scale, {1}, 1);
  if (!scale.empty()) scale_ = scale[0];
}

Result<std::unique_ptr<Model>> make_layered_decoder(const ConfigFile& config, Builder b,
                                                    const LayeredDecoderConfig& said) {
  TRY(config.finish());
  LayeredDecoderConfig c = said;
  TRY(choose_blocks(b, c));
  const DecoderConfig& decoder = c.decoder;
  ModelInfo info = info_of(c);
  info.architecture = TRY(config.architecture());
  std::vector<int> ropes;
  for (const LayerConfig& layer : c.layers) ropes.push_back(layer.rope);
  std::vector<GqaStates> states;  // of the layers built so far
  auto make_layer = [&](Builder scope, int64_t i) {
    LayerConfig config_of_layer = at(c.layers, i);
    if (config_of_layer.keys_of) {
      auto* attention = std::get_if<GqaConfig>(&*config_of_layer.mixer);
      CHECK(attention != nullptr, "layer {} shares keys but has no grouped-query attention", i);
      attention->shared = at(states, *config_of_layer.keys_of);
    }
    DecoderLayer layer(scope, decoder, c.style, config_of_layer);
    states.push_back(layer.states());
    return layer;
  };
  using Prediction = PredictionLayer<DecoderLayer>;
  auto make_prediction = [&]() -> std::optional<Prediction> {
    if (!c.prediction) return std::nullopt;
    const PredictionNames& names = c.prediction_names;
    Builder after = b / decoder.scope / "layers" / decoder.layers;
    // Drafts are made without adapters.
    Builder scope = (names.scope.empty() ? after : b / names.scope).without_adapters();
    return Prediction(scope, scope / names.norm, decoder, names,
                      DecoderLayer(scope_of(scope, names.layer), decoder, c.style, *c.prediction));
  };
  auto model = std::make_unique<DecoderModel<DecoderLayer, Prediction>>(
      b, std::move(info), decoder, make_layer, make_prediction, std::move(ropes));
  if (c.style.inputs.width > 0) {
    model->set_layer_inputs(LayerInputs(b / decoder.scope, c.style.inputs));
  }
  return model;
}

}  // namespace banyan
