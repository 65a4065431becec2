#include "text/stream_decoder.h"

#include <algorithm>
#include <utility>

#include "unicode/unicode.h"

namespace banyan {
namespace {

constexpr std::string_view kReplacementCharacter = "\xef\xbf\xbd";  // U+FFFD

bool is_incomplete(std::string_view text) {
  while (text.starts_with(kReplacementCharacter)) text.remove_prefix(kReplacementCharacter.size());
  return text.empty();
}

}  // namespace

StreamDecoder::StreamDecoder(const Tokenizer& tokenizer, bool skip_special_tokens,
                             std::vector<std::string> stop_strings)
    : tokenizer_(&tokenizer),
      skip_special_tokens_(skip_special_tokens),
      state_(tokenizer.parts_.decoder, ByteRuns::kByCharacters) {
  for (std::string& text : stop_strings) {
    if (text.empty()) continue;
    Stop stop{std::move(text), {}, 0};
    stop.fallback.assign(stop.text.size(), 0);
    for (uint32_t i = 1, length = 0; i < stop.text.size(); ++i) {
      while (length > 0 && stop.text[i] != stop.text[length]) length = stop.fallback[length - 1];
      if (stop.text[i] == stop.text[length]) ++length;
      stop.fallback[i] = length;
    }
    stops_.push_back(std::move(stop));
  }
}

void StreamDecoder::follow(std::span<const TokenId> before) {
  constexpr size_t kTokensMax = 5;  // as in SGLang; characters and decoders need no more context
  before = before.last(std::min(before.size(), kTokensMax));
  DecoderState whole = state_;
  std::string given, all;
  for (TokenId id : before) {
    const auto spelling = tokenizer_->decodable(id, skip_special_tokens_);
    if (!spelling) continue;
    (void)state_.push(*spelling, given);
    (void)whole.push(*spelling, all);
  }
  (void)whole.finish(all);
  // Held-back text is emitted later. Part of a character stays in the decoder until it is complete.
  if (all.starts_with(given)) context_ = all.substr(given.size());
  if (is_incomplete(context_)) context_.clear();
}

// Drops from `text` the characters that were already in the decoder after follow().
std::string_view StreamDecoder::without_context(std::string_view text) {
  while (!context_.empty() && !text.empty()) {
    size_t invalid = 0;
    const size_t size = unicode::character_size(text, invalid);
    if (size == 0 || !context_.starts_with(text.substr(0, size))) {
      context_.clear();  // a later byte changed earlier text
      break;
    }
    context_.erase(0, size);
    text.remove_prefix(size);
  }
  return text;
}

StreamDecoder::Delta StreamDecoder::push(TokenId id) {
  if (stopped_) return {};
  std::string text;
  if (auto spelling = tokenizer_->decodable(id, skip_special_tokens_)) {
    // Only a decoder's own regex can fail; the token then adds no text.
    (void)state_.push(*spelling, text);
  }
  return take(without_context(text), false);
}

StreamDecoder::Delta StreamDecoder::finish() {
  if (stopped_) return {};
  std::string text;
  (void)state_.finish(text);
  return take(without_context(text), true);
}

// Emits `held_` and `text` up to the possible start of a stop string, or up to the stop string that
// completes first (the longest one if several end together).
StreamDecoder::Delta StreamDecoder::take(std::string_view text, bool last) {
  if (stops_.empty()) return {std::string(text), std::nullopt};
  for (char c : text) {
    held_.push_back(c);
    const Stop* found = nullptr;
    for (Stop& stop : stops_) {
      while (stop.matched > 0 && stop.text[stop.matched] != c) {
        stop.matched = stop.fallback[stop.matched - 1];
      }
      if (stop.text[stop.matched] == c) ++stop.matched;
      if (stop.matched < stop.text.size()) continue;
      if (found == nullptr || stop.text.size() > found->text.size()) found = &stop;
      stop.matched = stop.fallback[stop.matched - 1];
    }
    if (found == nullptr) continue;
    stopped_ = true;
    held_.resize(held_.size() - found->text.size());
    return {std::exchange(held_, {}), found->text};
  }
  size_t keep = 0;
  for (const Stop& stop : stops_) keep = std::max<size_t>(keep, last ? 0 : stop.matched);
  Delta delta{held_.substr(0, held_.size() - keep), std::nullopt};
  held_.erase(0, held_.size() - keep);
  return delta;
}

}  // namespace banyan
