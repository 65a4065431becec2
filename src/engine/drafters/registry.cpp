#include "engine/drafters/registry.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "engine/drafters/mtp.h"
#include "engine/drafters/ngram.h"
#include "engine/drafters/suffix.h"

namespace banyan {
namespace {

constexpr std::array kDrafters = {
    DrafterKind{"ngram", [](const EngineConfig& c, Runner&) { return make_ngram_drafter(c); }},
    DrafterKind{"suffix", [](const EngineConfig&, Runner&) { return make_suffix_drafter(); }},
    DrafterKind{"mtp", [](const EngineConfig&, Runner& r) { return make_mtp_drafter(r); }},
};

}  // namespace

std::span<const DrafterKind> registered_drafters() {
  return kDrafters;
}

Status check_drafters(std::span<const std::string> names) {
  for (const std::string& name : names) {
    if (std::ranges::find(kDrafters, name, &DrafterKind::name) != kDrafters.end()) continue;
    std::vector<std::string_view> known;
    for (const DrafterKind& kind : kDrafters) known.push_back(kind.name);
    return unsupported("drafter \"{}\" is not supported; supported: {}", name,
                       fmt::join(known, ", "));
  }
  return {};
}

std::vector<NamedDrafter> make_drafters(const EngineConfig& config, Runner& runner) {
  std::vector<NamedDrafter> drafters;
  for (const DrafterKind& kind : kDrafters) {
    bool asked = std::ranges::find(config.drafters, kind.name) != config.drafters.end();
    if (asked || kind.name == kPredictionDrafter) {
      drafters.push_back({kind.name, kind.make(config, runner), asked});
    }
  }
  return drafters;
}

}  // namespace banyan
