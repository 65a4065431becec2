#include "models/mixer.h"

#include <fmt/format.h>

#include <type_traits>
#include <utility>

#include "models/config/common.h"

namespace banyan {
namespace {

template <class... Bodies>
struct Overload : Bodies... {
  using Bodies::operator()...;
};

}  // namespace

Mixer::Mixer(Builder b, const MixerConfig& c)
    : mixer_(std::visit(
          Overload{[&](const GqaConfig& m) -> decltype(mixer_) { return GqaAttention(b, m); },
                   [&](const MlaConfig& m) -> decltype(mixer_) { return MlaAttention(b, m); },
                   [&](const KdaConfig& m) -> decltype(mixer_) { return KdaAttention(b, m); },
                   [&](const LightningConfig& m) -> decltype(mixer_) {
                     return LightningAttention(b, m);
                   },
                   [&](const GatedDeltaConfig& m) -> decltype(mixer_) { return GatedDelta(b, m); },
                   [&](const GatedConvConfig& m) -> decltype(mixer_) { return GatedConv(b, m); },
                   [&](const Mamba2Config& m) -> decltype(mixer_) { return Mamba2(b, m); }},
          c)) {}

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

MixerInfo describe(const MixerConfig& c) {
  return std::visit(
      Overload{[](const GqaConfig& m) -> MixerInfo {
                 const char* gate = m.gated ? ", gated" : "";
                 return {fmt::format("gqa{}", gate), 4 * m.q_heads * m.head_dim};
               },
               [](const MlaConfig& m) -> MixerInfo {
                 return {m.expanded_prefill ? "mla, expanded prefill" : "mla", mla_flops_per_key(m),
                         mla_prompt_flops_per_key(m)};
               },
               [](const KdaConfig&) -> MixerInfo { return {"kda"}; },
               [](const LightningConfig&) -> MixerInfo { return {"lightning"}; },
               [](const GatedDeltaConfig&) -> MixerInfo { return {"gated delta net"}; },
               [](const GatedConvConfig&) -> MixerInfo { return {"gated convolution"}; },
               [](const Mamba2Config&) -> MixerInfo { return {"mamba 2"}; }},
      c);
}

}  // namespace banyan
