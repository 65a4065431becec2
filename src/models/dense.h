// What the dense families of the Llama line have in common: the layer, and the config keys that
// mean the same in all of them. Each family file reads its own differences and says so.
#pragma once

#include <memory>
#include <vector>

#include "models/config/common.h"
#include "nn/mlp.h"
#include "weights/files/config_file.h"

namespace banyan {

// Where families differ on a key that config.json leaves out.
struct DenseDefaults {
  GqaDefaults attention = {};
  int64_t context_tokens = 32768;
};

struct DenseConfig {
  DecoderConfig decoder;
  GqaConfig attention;
  int64_t intermediate = 0;
  bool mlp_bias = false;
  int64_t context_tokens = 0;
  std::vector<int64_t> window_tokens;  // per layer; 0: no window
};

// The common keys. Problems stick to `config`.
DenseConfig read_dense(const ConfigFile& config, const Builder& b, const DenseDefaults& defaults);

// The windows of Qwen2 and Qwen3: off unless use_sliding_window, then by layer_types, or from
// max_window_layers on.
std::vector<int64_t> read_qwen_windows(const ConfigFile& config, int64_t layers);

// Checks that reading went well and builds the model.
Result<std::unique_ptr<Model>> make_dense(const ConfigFile& config, Builder b,
                                          const DenseConfig& c);

class DenseLayer {
 public:
  DenseLayer(Builder b, const DenseConfig& c, int64_t index);

  Tensor operator()(Step& s, Tensor x, const Rotation& rotation) const {
    x = add(s, x, attention_(s, attention_norm_(s, x), rotation));
    return add(s, x, mlp_(s, mlp_norm_(s, x)));
  }

 private:
  RmsNorm attention_norm_, mlp_norm_;
  GqaAttention attention_;
  GatedMlp mlp_;
};

}  // namespace banyan
