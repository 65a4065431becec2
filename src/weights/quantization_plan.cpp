#include "weights/quantization_plan.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/quote.h"

namespace banyan {
namespace {

// Bounds the time of matching any pattern against a name.
constexpr uint32_t kMatchLimit = 100'000;

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

std::string regex_message(int code) {
  PCRE2_UCHAR text[256];
  pcre2_get_error_message(code, text, sizeof(text));
  return reinterpret_cast<const char*>(text);
}

}  // namespace

struct QuantizationPlan::Override {
  Override() = default;
  Override(const Override&) = delete;
  Override& operator=(const Override&) = delete;
  ~Override() {
    pcre2_match_data_free(data);
    pcre2_match_context_free(context);
    pcre2_code_free(code);
  }

  bool matches(const std::string& name) {
    int found = pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(name.data()), name.size(), 0, 0,
                            data, context);
    matched = matched || found >= 0;
    return found >= 0;
  }

  std::string text;
  Choice choice;
  bool matched = false;
  pcre2_code* code = nullptr;
  pcre2_match_data* data = nullptr;
  pcre2_match_context* context = nullptr;
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
    auto made = std::make_shared<Override>();
    made->text = text;
    std::string name = text.substr(equals + 1);
    std::optional<Choice> wanted = parse_format(name, true);
    if (!wanted) {
      return invalid_argument(
          "quantization override {}: {} is not a format; supported: none, weight-only, bf16, f16, "
          "f32{}",
          quote(text), quote(name), format_names());
    }
    made->choice = *wanted;
    int error = 0;
    PCRE2_SIZE offset = 0;
    made->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), equals,
                               PCRE2_NO_UTF_CHECK, &error, &offset, nullptr);
    if (made->code == nullptr) {
      return invalid_argument("quantization override {}: invalid regex at offset {}: {}",
                              quote(text), offset, regex_message(error));
    }
    made->data = pcre2_match_data_create(1, nullptr);
    made->context = pcre2_match_context_create(nullptr);
    pcre2_set_match_limit(made->context, kMatchLimit);
    plan.overrides_.push_back(std::move(made));
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
