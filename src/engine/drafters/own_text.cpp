#include "engine/drafters/own_text.h"

#include <algorithm>
#include <memory>

#include "base/signed.h"
#include "engine/sequence.h"

namespace banyan {
namespace {

// Prompt tokens repeated before the predicted output, so that the start of the output matches it.
constexpr int64_t kSeam = 4;

void index_prompt(const Sequence& s, TextIndex& text) {
  std::span prompt = slice(s.tokens, 0, s.prompt_tokens);
  text.append(prompt);
  const std::vector<TokenId>& prediction = s.request.options.prediction_token_ids;
  if (prediction.empty()) return;
  TokenId separator = TextIndex::kSeparator;
  auto seam = prompt.last(as_size(std::min(kSeam, s.prompt_tokens)));
  text.append({&separator, 1});
  text.append(seam);
  text.append(prediction);
  text.append({&separator, 1});
  text.append(seam);
}

}  // namespace

DraftContext::DraftContext(const DraftTask& task) {
  std::span<const TokenId> text = task.sequence->tokens, forced = task.forced;
  forced = forced.last(std::min(forced.size(), tokens_.size()));
  text = text.last(std::min(text.size(), tokens_.size() - forced.size()));
  auto end = std::ranges::copy(text, tokens_.begin()).out;
  end = std::ranges::copy(forced, end).out;
  count_ = end - tokens_.begin();
}

const TextIndex& own_text(Sequence& s) {
  if (s.draft.text == nullptr) {
    int64_t prediction = std::ssize(s.request.options.prediction_token_ids) + 2 + 2 * kSeam;
    s.draft.text = std::make_unique<TextIndex>(s.tokens_max + prediction);
    index_prompt(s, *s.draft.text);
    s.draft.indexed = s.prompt_tokens;
  }
  s.draft.text->append(std::span(s.tokens).subspan(as_size(s.draft.indexed)));
  s.draft.indexed = s.length();
  return *s.draft.text;
}

float match_confidence(int64_t length) {
  return 1 - 1 / static_cast<float>(length + 1);
}

TokenId own_token(const TextIndex& text, std::span<const TokenId> forced,
                  std::span<const TokenId> drafted, int64_t match_end, int64_t ahead) {
  int64_t i = match_end + ahead;
  if (i < text.size()) return text[i];
  i -= text.size();
  if (i < std::ssize(forced)) return at(forced, i);
  return at(drafted, i - std::ssize(forced));
}

}  // namespace banyan
