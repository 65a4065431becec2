#include "cli/format.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string_view>

#include "llm/llm_parts.h"
#include "text/tokenizer/tokenizer.h"

namespace banyan::cli {
namespace {

// Three significant digits and one of `units`, each a thousand times the one before.
std::string scaled(int64_t value, const std::array<std::string_view, 6>& units) {
  auto x = static_cast<double>(value);
  size_t unit = 0;
  while (std::fabs(x) >= 999.5 && unit + 1 < units.size()) {
    x /= 1000;
    ++unit;
  }
  int decimals = unit == 0 || std::fabs(x) >= 99.95 ? 0 : std::fabs(x) >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f}{}", x, decimals, units[unit]);
}

}  // namespace

std::string format_bytes(int64_t bytes) {
  return scaled(bytes, {" B", " kB", " MB", " GB", " TB", " PB"});
}

std::string format_count(int64_t count) {
  return scaled(count, {"", " k", " M", " B", " T", " Q"});
}

std::string format_digits(int64_t count) {
  std::string digits = fmt::format("{}", count);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    bool group_begins = i > 0 && (digits.size() - i) % 3 == 0;
    if (group_begins) text += ',';
    text += digits[i];
  }
  return text;
}

Json token_text(const Llm& llm, TokenId id) {
  if (!llm.has_tokenizer()) return nullptr;
  return tokenizer_of(llm)->token_bytes(id);
}

Json expert_counts_json(const std::vector<ExpertCounts>& layers) {
  Json list = Json::array();
  for (const ExpertCounts& layer : layers) {
    list.push_back({{"layer", layer.layer},
                    {"tokens", layer.rows},
                    {"active_mean", layer.active_mean()},
                    {"experts", layer.experts},
                    {"identities", layer.identities}});
  }
  return list;
}

}  // namespace banyan::cli
