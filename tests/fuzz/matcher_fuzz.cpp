// A grammar (up to the first zero byte: EBNF, or a schema when it begins with a brace) and then
// tokens, rollbacks and masks: a token is accepted exactly when the mask has it.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "grammar/run/matcher.h"

namespace {

const std::shared_ptr<const banyan::TokenVocabulary>& vocabulary() {
  static const auto kVocabulary = [] {
    std::vector<std::string> bytes(1);
    for (int b = 0; b < 254; ++b) bytes.push_back(std::string(1, static_cast<char>(b)));
    for (const char* text : {"ab", "\",\"", "\":", "12", "{\"", "]}", "a\"", "true", "aaa", "  "}) {
      bytes.push_back(text);
    }
    return banyan::TokenVocabulary::make(bytes, {0});
  }();
  return kVocabulary;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace banyan;
  std::string_view input(reinterpret_cast<const char*>(data), size);
  size_t zero = std::min(input.find('\0'), input.size());
  std::string_view source = input.substr(0, zero), actions = input.substr(std::min(zero + 1, size));
  GrammarLimits limits{.dfa_states_max = 300, .nodes_max = 10'000, .compile_s = 0.2};
  auto grammar = source.starts_with('{') ? Grammar::from_json_schema(source, {}, limits)
                                         : Grammar::from_ebnf(source, "root", limits);
  if (!grammar) return 0;
  auto compiled = std::make_shared<const CompiledGrammar>(*grammar, vocabulary(), TokenizeText());
  Matcher matcher(compiled);
  std::vector<uint32_t> mask(vocabulary()->mask_words());
  for (char action : actions.substr(0, 64)) {
    auto value = static_cast<uint8_t>(action);
    matcher.fill_mask(mask);
    if (value == 255) {
      matcher.rollback(std::min(3, matcher.accepted_tokens()));
      continue;
    }
    auto token = static_cast<TokenId>(value);
    if (value >= 240) token += 14;  // the pieces of several bytes
    bool allowed = (mask[token / 32] >> (token % 32) & 1) != 0;
    CHECK(matcher.try_accept(token) == allowed, "token {}", token);
    matcher.draft_tokens();
  }
  return 0;
}
