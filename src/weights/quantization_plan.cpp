#include "weights/quantization_plan.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/quote.h"
#include "weights/name_pattern.h"

namespace banyan {
namespace {

std::string format_names() {
  std::string names;
  for (const WeightFormat& format : weight_formats()) {
    if (format.quantise != nullptr) names += fmt::format(", {}", format.name);
  }
  return names + " (int8 and int4 also in groups, as int4:64, of 32, 64, 128 or 256)";
}

// Parses "int4:64"; `extra` also allows formats that are not quantised. Nothing if it is not a
// format.
std::optional<QuantizationPlan::Choice> parse_format(std::string_view text, bool extra) {
  if (text == "none") return QuantizationPlan::Choice{.made = extra};
  if (text == "weight-only") return QuantizationPlan::Choice{.made = extra, .weight_only = true};
  size_t colon = std::min(text.find(':'), text.size());
  QuantizationPlan::Choice choice{.made = true, .format = format_named(text.substr(0, colon))};
  if (choice.format == nullptr) return {};
  if (choice.format->quantise == nullptr && (choice.format->quantised || !extra)) return {};
  if (colon == text.size()) return choice;
  constexpr std::array<std::pair<std::string_view, int64_t>, 4> kGroups = {
      {{"32", 32}, {"64", 64}, {"128", 128}, {"256", 256}}};
  bool integers = choice.format->name == "int8" || choice.format->name == "int4";
  auto group = std::ranges::find(kGroups, text.substr(colon + 1),
                                 &std::pair<std::string_view, int64_t>::first);
  if (!integers || group == kGroups.end()) return {};
  choice.group = group->second;
  return choice;
}

}  // namespace

struct QuantizationPlan::Override {
  std::string text;
  Choice choice;
  NamePattern pattern;
  bool matched = false;

  bool matches(const std::string& name) {
    bool found = pattern.matches(name);
    matched = matched || found;
    return found;
  }
};

Result<QuantizationPlan> QuantizationPlan::create(std::string_view format,
                                                  const std::vector<std::string>& overrides) {
  QuantizationPlan plan;
  std::optional<Choice> choice = parse_format(format, false);
  if (!choice) {
    return invalid_argument("quantization is {}; supported: none, weight-only{}", quote(format),
                            format_names());
  }
  plan.choice_ = *choice;
  for (const std::string& text : overrides) {
    size_t equals = text.rfind('=');
    if (equals == text.npos || equals == 0) {
      return invalid_argument("quantization override {} is not REGEX=FORMAT", quote(text));
    }
    std::string name = text.substr(equals + 1);
    std::optional<Choice> wanted = parse_format(name, true);
    if (!wanted) {
      return invalid_argument(
          "quantization override {}: {} is not a format; supported: none, weight-only, bf16, f16, "
          "f32{}",
          quote(text), quote(name), format_names());
    }
    auto pattern = NamePattern::compile(std::string_view(text).substr(0, equals));
    if (!pattern) {
      return invalid_argument("quantization override {}: {}", quote(text), pattern.error().message);
    }
    plan.overrides_.push_back(
        std::make_shared<Override>(Override{text, *wanted, *std::move(pattern)}));
  }
  return plan;
}

QuantizationPlan::Choice QuantizationPlan::choose(const std::string& name, MatrixUse use) const {
  Choice choice;
  if (use != MatrixUse::kLookUp) choice = choice_;
  for (const auto& override : overrides_) {
    if (override->matches(name)) choice = override->choice;
  }
  return choice;
}

Status QuantizationPlan::check_overrides_matched() const {
  for (const auto& override : overrides_) {
    if (override->matched) continue;
    return invalid_argument(
        "quantization override {} matches no matrix of this model; "
        "`banyan inspect` lists their names",
        quote(override->text));
  }
  return {};
}

}  // namespace banyan
