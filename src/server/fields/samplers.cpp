#include "server/fields/samplers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/quote.h"

namespace banyan {
namespace {

struct Sampler {
  std::string_view name, other_name;
  void (*turn_off)(SamplingParams& s);
};

constexpr std::array kSamplers = {
    Sampler{"penalties", "",
            [](SamplingParams& s) {
              s.frequency_penalty = s.presence_penalty = 0;
              s.repetition_penalty = 1;
            }},
    Sampler{"dry", "", [](SamplingParams& s) { s.dry_multiplier = 0; }},
    Sampler{"top_n_sigma", "top-n-sigma", [](SamplingParams&) {}},  // always off
    Sampler{"top_k", "top-k", [](SamplingParams& s) { s.top_k = 0; }},
    Sampler{"typ_p", "typical_p", [](SamplingParams& s) { s.typical_p = 1; }},
    Sampler{"top_p", "top-p", [](SamplingParams& s) { s.top_p = 1; }},
    Sampler{"min_p", "min-p", [](SamplingParams& s) { s.min_p = 0; }},
    Sampler{"xtc", "", [](SamplingParams& s) { s.xtc_probability = 0; }},
    Sampler{"temperature", "temp", [](SamplingParams& s) { s.temperature = 1; }},
    Sampler{"infill", "", [](SamplingParams&) {}},
};

const Sampler* find_sampler(std::string_view name) {
  const auto* found = std::ranges::find_if(kSamplers, [&](const Sampler& sampler) {
    return !name.empty() && (name == sampler.name || name == sampler.other_name);
  });
  return found == kSamplers.end() ? nullptr : found;
}

}  // namespace

void read_samplers(RequestFields& fields, SamplingParams& sampling) {
  const Json* list = fields.find("samplers");
  if (list == nullptr) return;
  if (!list->is_array()) {
    fields.fail("samplers",
                fmt::format(" is {}; it must be a list of names, as [\"top_k\"]", show(*list)));
    return;
  }
  std::vector<const Sampler*> wanted;
  for (const Json& entry : *list) {
    wanted.push_back(entry.is_string() ? find_sampler(entry.get<std::string>()) : nullptr);
    if (wanted.back() != nullptr) continue;
    std::vector<std::string_view> known;
    for (const Sampler& sampler : kSamplers) known.push_back(sampler.name);
    fields.fail("samplers",
                fmt::format(" has {}; supported: {}", show(entry), fmt::join(known, ", ")),
                ErrorCode::kUnsupported);
    return;
  }
  for (const Sampler& sampler : kSamplers) {
    if (std::ranges::find(wanted, &sampler) == wanted.end()) sampler.turn_off(sampling);
  }
}

}  // namespace banyan
