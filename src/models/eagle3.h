// EAGLE-3 heads (Li et al. 2025, arXiv:2503.01840): a decoder layer in a checkpoint of its own that
// drafts for one model. It reads the model's hidden states at three depths, or later its own:
//
//   g = fc(hidden states)    after a step of the model; after a pass of the head, its m
//   a = g + attention([norm(embed(token)) | norm(g)])
//   m = a + mlp(norm(a)),  logits = lm_head(norm(m))
//
// The logits are of a part of the model's vocabulary, which the file lists; other tokens are never
// drafted. The layer's KV cache is like that of an MTP layer (models/prediction.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "banyan/config.h"
#include "banyan/status.h"
#include "models/load.h"

namespace banyan {

// Whether an entry of `architectures` in config.json names such a head.
bool is_eagle3(std::string_view architecture);

// Adds the head in config.draft_model_path to the model: its layer, weights and states. `options`
// are those that the model was loaded with.
Status add_eagle3(const EngineConfig& config, LoadOptions options, LoadedModel& loaded);

// What a head is, for display.
struct Eagle3Info {
  std::string architecture;
  int64_t hidden = 0, target_hidden = 0;
  int64_t vocabulary = 0, draft_vocabulary = 0;
  std::vector<int64_t> layers;  // of the model whose inputs it reads; empty: the usual ones
  bool own_embedding = false;
  int64_t parameters = 0, weight_bytes = 0;
};

// Nothing if the folder has no config.json of a head.
Result<std::optional<Eagle3Info>> inspect_eagle3(const std::string& folder);

}  // namespace banyan
