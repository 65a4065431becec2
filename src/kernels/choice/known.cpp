// One entry per processor, with measured results only; an unknown processor is probed once, which
// takes some seconds. docs/BENCHMARKS.md has the figures and says how to add an entry.
#include "kernels/choice/known.h"

#include <algorithm>

namespace banyan {
namespace {

constexpr std::string_view kAmd = "AuthenticAMD", kIntel = "GenuineIntel";
constexpr std::string_view kVnni = "avx512_vnni", kBf16 = "avx512_bf16", kAmx = "amx";

// clang-format off
constexpr KnownProcessor kKnown[] = {
  // name, vendor, family, models, runs, fastest, figures
  {"Zen 4 (EPYC)", kAmd, 25, 16, 31, kBf16, kBf16, "f32 118, pairs of bf16 235 GFLOP/s"},
  {"Zen 5 (EPYC)", kAmd, 26, 0, 31, kBf16, kBf16, "f32 242, pairs of bf16 451 GFLOP/s"},
  {"Sapphire Rapids", kIntel, 6, 143, 143, kAmx, kAmx, "f32 179, tiles of bf16 1,150 GFLOP/s"},
  {"Emerald Rapids", kIntel, 6, 207, 207, kAmx, kAmx, "f32 179, tiles of bf16 1,150 GFLOP/s"},
  {"Sapphire Rapids without AMX", kIntel, 6, 143, 143, kBf16, kVnni, "pairs of bf16 half of f32"},
  {"Emerald Rapids without AMX", kIntel, 6, 207, 207, kBf16, kVnni, "f32 179, pairs 89 GFLOP/s"},
};
// clang-format on

}  // namespace

std::span<const KnownProcessor> known_processors() {
  return kKnown;
}

const KnownProcessor* find_known(const Processor& processor, std::string_view runs) {
  const auto* it = std::ranges::find_if(kKnown, [&](const KnownProcessor& known) {
    return known.vendor == processor.vendor && known.family == processor.family &&
           known.model_first <= processor.model && processor.model <= known.model_last &&
           known.runs == runs;
  });
  return it == std::end(kKnown) ? nullptr : it;
}

}  // namespace banyan
