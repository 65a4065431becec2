#include "engine/drafters/registry.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "engine/drafters/draft_model.h"
#include "engine/drafters/mtp.h"
#include "engine/drafters/ngram.h"
#include "engine/drafters/suffix.h"

namespace banyan {
namespace {

constexpr std::array kDrafters = {
    DrafterKind{"ngram",
                [](const EngineConfig& c, DrafterModels&) { return make_ngram_drafter(c); }},
    DrafterKind{"suffix",
                [](const EngineConfig&, DrafterModels&) { return make_suffix_drafter(); }},
    DrafterKind{"mtp",
                [](const EngineConfig&, DrafterModels& m) { return make_mtp_drafter(m.runner); }},
    DrafterKind{"eagle3",
                [](const EngineConfig&, DrafterModels& m) { return make_mtp_drafter(m.runner); }},
    DrafterKind{"draft",
                [](const EngineConfig& c, DrafterModels& m) {
                  return make_draft_model_drafter(c, std::move(m.draft),
                                                  m.runner.info().vocabulary);
                }},
};

bool has_name(std::span<const std::string> drafters, std::string_view name) {
  return std::ranges::find(drafters, name) != drafters.end();
}

}  // namespace

std::span<const DrafterKind> registered_drafters() {
  return kDrafters;
}

Result<std::vector<std::string>> chosen_drafters(const EngineConfig& config) {
  bool has_path = !config.draft_model_path.empty();
  if (config.drafters.empty() && has_path) return std::vector<std::string>{"draft"};
  for (const std::string& name : config.drafters) {
    if (std::ranges::find(kDrafters, name, &DrafterKind::name) != kDrafters.end()) continue;
    std::vector<std::string_view> known;
    for (const DrafterKind& kind : kDrafters) known.push_back(kind.name);
    return unsupported("drafter \"{}\" is not supported; supported: {}", name,
                       fmt::join(known, ", "));
  }
  bool drafts = has_name(config.drafters, "draft"), head = has_name(config.drafters, "eagle3");
  if (drafts && !has_path) {
    return invalid_argument(
        "drafter \"draft\" needs a smaller model with the same vocabulary: give its folder as "
        "draft_model_path (--speculative-draft-model-path)");
  }
  if (head && !has_path) {
    return invalid_argument(
        "drafter \"eagle3\" needs a head that was trained for the model: give its folder as "
        "draft_model_path (--speculative-draft-model-path)");
  }
  if (head && (drafts || has_name(config.drafters, "mtp"))) {
    return invalid_argument("drafter \"eagle3\" does not go with \"{}\": choose one of them",
                            drafts ? "draft" : "mtp");
  }
  if (has_path && !drafts && !head) {
    return invalid_argument(
        "draft_model_path is {}, but the drafters are {}: leave it out, or add \"draft\" "
        "(--speculative-algorithm STANDALONE) or \"eagle3\" (EAGLE3)",
        config.draft_model_path, fmt::join(config.drafters, ", "));
  }
  return config.drafters;
}

std::vector<NamedDrafter> make_drafters(const EngineConfig& config, DrafterModels models) {
  std::vector<NamedDrafter> drafters;
  for (const DrafterKind& kind : kDrafters) {
    bool asked = has_name(config.drafters, kind.name);
    if (asked || kind.name == kPredictionDrafter) {
      drafters.push_back({kind.name, kind.make(config, models), asked});
    }
  }
  return drafters;
}

}  // namespace banyan
