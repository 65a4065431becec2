// The sequence mixer of a layer: one of those in nn/, selected by its config.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "nn/gated_conv.h"
#include "nn/gated_delta.h"
#include "nn/gqa_attention.h"
#include "nn/kda_attention.h"
#include "nn/lightning_attention.h"
#include "nn/mamba2.h"
#include "nn/mla_attention.h"

namespace banyan {

// A new mixer needs an entry here and in Mixer, and two functions in mixer.cpp.
using MixerConfig = std::variant<GqaConfig, MlaConfig, KdaConfig, LightningConfig, GatedDeltaConfig,
                                 GatedConvConfig, Mamba2Config>;

class Mixer {
 public:
  Mixer(Builder b, const MixerConfig& c);

  // x [T, hidden] -> [T, hidden]
  Tensor operator()(Step& s, Tensor x, const Rotation& rotation) const;

  // The KV cache of grouped-query attention; empty for other mixers.
  GqaStates states() const;

 private:
  std::variant<GqaAttention, MlaAttention, KdaAttention, LightningAttention, GatedDelta, GatedConv,
               Mamba2>
      mixer_;
};

// What is known about a mixer before it is loaded.
struct MixerInfo {
  std::string name;  // for display: "mla, rank 512 + 64"
  // Floating-point operations per query and key when decoding, and in a prompt if that differs (0:
  // same).
  int64_t flops_per_key = 0;
  int64_t prompt_flops_per_key = 0;
  // For mixers that attend to chosen keys: the largest number of chosen keys, and the cost of
  // choosing per earlier position. 0: attends to all.
  int64_t selected_keys = 0;
  double index_bytes_per_key = 0, index_flops_per_key = 0;
  int64_t index_top_k = 0;  // tokens that an index of tokens chooses; 0: no such index
};
MixerInfo describe(const MixerConfig& c);

}  // namespace banyan
