#include "cli/format.h"

#include <fmt/format.h>

#include "llm/llm_parts.h"
#include "text/tokenizer/tokenizer.h"

namespace banyan::cli {
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
