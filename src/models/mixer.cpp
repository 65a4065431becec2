#include "models/mixer.h"

#include <fmt/format.h>

#include <type_traits>

namespace banyan {
namespace {

// "gqa, window 128, sinks, no rotation". Per key and query head, the score costs head_dim
// multiply-adds and the value as many.
MixerInfo info_of(const GqaConfig& c) {
  std::string text = "gqa";
  if (c.gated) text += ", gated";
  if (c.window_tokens > 0) text += fmt::format(", window {}", c.window_tokens);
  if (c.chunk_tokens > 0) text += fmt::format(", chunks of {}", c.chunk_tokens);
  if (c.sinks) text += ", sinks";
  if (!c.rotary) text += ", no rotation";
  MixerInfo info{text, 4 * c.q_heads * c.head_dim};
  if (c.index) {
    info.name +=
        fmt::format(", {} blocks of {} by an index", c.index->top_k, c.index->block_tokens);
    info.selected_keys = c.index->top_k * c.index->block_tokens;
    info.index_bytes_per_key = c.index->key_bytes;
    info.index_flops_per_key = 2.0 * (c.kv_heads * c.index->dim);
  }
  if (!c.moba || c.moba->block_tokens == 0) return info;
  const MobaShape& moba = *c.moba;
  info.name += fmt::format(", {} blocks of {}{}{}", moba.top_k, moba.block_tokens,
                           moba.decode ? "" : " in prompts", moba.by_option ? " by option" : "");
  if (!moba.decode) return info;
  info.selected_keys = moba.dense_tokens();
  info.index_bytes_per_key = 4.0 * (c.kv_heads * c.head_dim) / moba.block_tokens;
  info.index_flops_per_key = info.index_bytes_per_key / 2;
  return info;
}

// Expanding the prompt is not counted: it is one product with kv_b_proj per position, as many
// operations as absorbing takes.
MixerInfo info_of(const MlaConfig& c) {
  std::string text = fmt::format("mla, rank {} + {}", c.rank, c.rope_dim);
  if (c.gate != MlaGate::kNone) text += ", gated";
  if (!c.rotary) text += ", no rotation";
  MixerInfo info{text, 2 * c.heads * (2 * c.rank + c.rope_dim)};
  if (c.index) {
    info.name += fmt::format(", {} keys of an index", c.index->top_k);
    info.name += c.index->shared ? " that an earlier layer has" : "";
    info.selected_keys = info.index_top_k = c.index->top_k;
    if (!c.index->shared) {
      info.index_bytes_per_key = c.index->key_bytes;
      info.index_flops_per_key = 2.0 * (c.index->heads * c.index->dim);
    }
  }
  if (!c.expanded_prefill) return info;
  info.name += ", expanded prefill";
  info.prompt_flops_per_key = 2 * c.heads * (c.nope_dim + c.rope_dim + c.value_dim);
  return info;
}

MixerInfo info_of(const KdaConfig& /*c*/) {
  return {"kda"};
}

MixerInfo info_of(const LightningConfig& /*c*/) {
  return {"lightning"};
}

MixerInfo info_of(const GatedDeltaConfig& /*c*/) {
  return {"gated delta net"};
}

MixerInfo info_of(const GatedConvConfig& /*c*/) {
  return {"gated convolution"};
}

MixerInfo info_of(const Mamba2Config& /*c*/) {
  return {"mamba 2"};
}

GqaAttention make(Builder b, const GqaConfig& c) {
  return {b, c};
}
MlaAttention make(Builder b, const MlaConfig& c) {
  return {b, c};
}
KdaAttention make(Builder b, const KdaConfig& c) {
  return {b, c};
}
LightningAttention make(Builder b, const LightningConfig& c) {
  return {b, c};
}
GatedDelta make(Builder b, const GatedDeltaConfig& c) {
  return {b, c};
}
GatedConv make(Builder b, const GatedConvConfig& c) {
  return {b, c};
}
Mamba2 make(Builder b, const Mamba2Config& c) {
  return {b, c};
}

}  // namespace

Mixer::Mixer(Builder b, const MixerConfig& c)
    : mixer_(std::visit([&](const auto& m) -> decltype(mixer_) { return make(b, m); }, c)) {}

Tensor Mixer::operator()(Step& s, Tensor x, const Rotation& rotation) const {
  return std::visit(
      [&](const auto& mixer) {
        if constexpr (std::is_invocable_v<decltype(mixer), Step&, Tensor, const Rotation&>) {
          return mixer(s, x, rotation);
        } else {
          return mixer(s, x);
        }
      },
      mixer_);
}

GqaStates Mixer::states() const {
  const auto* attention = std::get_if<GqaAttention>(&mixer_);
  return attention == nullptr ? GqaStates{} : attention->states();
}

MixerInfo describe(const MixerConfig& c) {
  return std::visit([](const auto& mixer) { return info_of(mixer); }, c);
}

}  // namespace banyan
