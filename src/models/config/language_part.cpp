#include "models/config/language_part.h"

namespace banyan {

LanguagePart read_language_part(const ConfigFile& config, const Builder& b) {
  if (!config.has("text_config")) return {config, "model"};
  config.ignore_object("vision_config");
  // A checkpoint without a head of its own is tied, whatever is said here.
  config.ignore({"image_token_id", "video_token_id", "vision_start_token_id", "vision_end_token_id",
                 "tie_word_embeddings"});
  (b / "model.visual").ignore_scope();
  return {config.object("text_config"), "model.language_model"};
}

}  // namespace banyan
