#include "models/config/language_part.h"

#include <array>
#include <string_view>

namespace banyan {
namespace {

// The other parts of a multimodal checkpoint: encoders and projectors, at the top level or under
// `model`.
constexpr std::array<std::string_view, 9> kOtherParts = {
    "visual",          "vision_tower", "vision_model", "multi_modal_projector",
    "patch_merge_mlp", "mm_projector", "embed_vision", "audio_tower",
    "embed_audio"};

}  // namespace

LanguagePart language_part(const ConfigFile& config, const Builder& b) {
  if (!config.has("text_config")) return {config, b};
  for (std::string_view part : kOtherParts) {
    (b / part).ignore_scope();
    (b / "model" / part).ignore_scope();
  }
  for (std::string_view key : {"vision_config", "audio_config", "img_token_compression_config"}) {
    config.ignore_object(key);
  }
  // A checkpoint without an lm_head is tied, whatever this key says.
  config.ignore({"tie_word_embeddings"});
  // Placeholder tokens for images, audio and video, and encoder settings.
  config.ignore({"image_token_id",
                 "image_token_index",
                 "video_token_id",
                 "video_token_index",
                 "audio_token_id",
                 "audio_token_index",
                 "media_placeholder_token_id",
                 "vision_start_token_id",
                 "vision_end_token_id",
                 "boi_token_id",
                 "boi_token_index",
                 "eoi_token_id",
                 "eoi_token_index",
                 "boa_token_id",
                 "boa_token_index",
                 "eoa_token_id",
                 "eoa_token_index",
                 "mm_tokens_per_image",
                 "vision_soft_tokens_per_image",
                 "spatial_merge_size",
                 "vision_feature_layer",
                 "vision_feature_select_strategy",
                 "image_grid_pinpoints",
                 "image_seq_length",
                 "process_image_mode",
                 "multimodal_projector_bias",
                 "projector_hidden_act",
                 "projection_hidden_size",
                 "projector_hidden_size",
                 "projection_layer_norm_eps",
                 "use_unified_vision_chunk",
                 "video_placeholder",
                 "ignore_index"});
  bool published = b.has("language_model.model.embed_tokens.weight");
  return {config.object("text_config"), published ? b / "language_model" : b};
}

}  // namespace banyan
