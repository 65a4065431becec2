#include "grammar/run/matcher.h"

#include <algorithm>
#include <bitset>

#include "base/check.h"
#include "base/signed.h"

namespace banyan {

Matcher::Matcher(std::shared_ptr<const CompiledGrammar> compiled, EarlyStops early)
    : compiled_(std::move(compiled)),
      early_(std::move(early)),
      parser_(compiled_->grammar.shared_automaton(), compiled_->vocabulary->token_bytes_max() + 1),
      state_(parser_.start()) {}

void Matcher::fill_mask(std::span<uint32_t> mask) {
  fill_grammar_mask(mask);
  if (accepted_tokens() >= early_.tokens_min || early_.stops.empty()) return;
  std::vector<TokenId> cleared;
  for (TokenId stop : early_.stops) {
    uint32_t bit = 1u << (stop % 32);
    uint32_t& word = mask[stop / 32];
    if ((word & bit) != 0) cleared.push_back(stop);
    word &= ~bit;
  }
  if (std::ranges::any_of(mask, [](uint32_t word) { return word != 0; })) return;
  for (TokenId stop : cleared) mask[stop / 32] |= 1u << (stop % 32);
}

void Matcher::fill_grammar_mask(std::span<uint32_t> mask) {
  const TokenVocabulary& vocabulary = *compiled_->vocabulary;
  if (finished_) {
    std::fill(mask.begin(), mask.end(), 0);
    for (TokenId end : vocabulary.ends()) mask[end / 32] |= 1u << (end % 32);
    return;
  }
  uint64_t hash = parser_.hash(state_);
  if (compiled_->masks.read(hash, mask)) return;
  builder_.build(parser_, state_, vocabulary, mask);
  compiled_->masks.write(hash, mask);
}

bool Matcher::try_accept(TokenId token) {
  const TokenVocabulary& vocabulary = *compiled_->vocabulary;
  bool ends = vocabulary.ends_output(token) && (finished_ || state_.complete);
  std::string_view bytes = vocabulary.bytes_of(token);
  if (!ends && (finished_ || bytes.empty())) return false;
  remember();
  if (ends) {
    finished_ = true;
  } else if (!parser_.run(state_, bytes)) {
    rollback(1);
    return false;
  } else {
    layout_.take(bytes);
  }
  return true;
}

void Matcher::accept(TokenId token) {
  if (try_accept(token)) return;
  remember();
  finished_ = true;
}

// Saves the state for rollback before a token is accepted.
void Matcher::remember() {
  marks_.push_back({static_cast<uint32_t>(history_.size()), state_.complete, finished_, layout_});
  history_.insert(history_.end(), state_.configurations.begin(), state_.configurations.end());
  drafts_.reset();
}

bool Matcher::describe(ConstraintSource& source) const {
  source.grammar = compiled_->source;
  source.early = early_;
  return source.grammar.has_value();
}

void Matcher::rollback(int tokens) {
  CHECK(tokens >= 0 && tokens <= std::ssize(marks_), "{} of {} tokens", tokens, marks_.size());
  if (tokens == 0) return;
  size_t left = marks_.size() - as_size(tokens);
  const Mark& mark = marks_[left];
  size_t end = tokens == 1 ? history_.size() : marks_[left + 1].begin;
  state_.configurations.assign(history_.begin() + mark.begin, history_.begin() + end);
  state_.complete = mark.complete;
  finished_ = mark.finished;
  layout_ = mark.layout;
  history_.resize(mark.begin);
  marks_.resize(left);
  drafts_.reset();
}

std::string Matcher::forced_bytes() {
  std::string bytes;
  if (finished_) return bytes;
  ParseState state = state_;
  size_t mark = parser_.stacks().mark();
  parser_.forced(state, bytes, kForcedBytesMax);
  parser_.stacks().rewind(mark);
  return bytes;
}

std::string Matcher::likely_bytes() {
  std::string bytes;
  bool open = layout_.between_tokens() && !state_.complete;
  if (finished_ || (!open && parser_.only_byte(state_) < 0)) return bytes;
  ParseState state = state_, next;
  JsonLayout layout = layout_;
  size_t mark = parser_.stacks().mark();
  while (bytes.size() < kForcedBytesMax) {
    size_t begin = bytes.size();
    parser_.forced(state, bytes, kForcedBytesMax);
    layout.take(std::string_view(bytes).substr(begin));
    if (state.complete || !layout.between_tokens()) break;
    std::bitset<256> choices;
    parser_.next_bytes(state, choices);
    int byte = layout.likely(choices);
    if (byte < 0) break;
    parser_.step(state, static_cast<uint8_t>(byte), next);
    if (next.dead()) break;
    bytes.push_back(static_cast<char>(byte));
    layout.take(std::string_view(bytes).substr(bytes.size() - 1));
    std::swap(state, next);
  }
  parser_.stacks().rewind(mark);
  // Most tokenizers attach a space to the text that follows it.
  bytes.erase(bytes.find_last_not_of(" \t") + 1);
  return bytes;
}

std::span<const TokenId> Matcher::draft_tokens() {
  if (drafts_) return *drafts_;
  drafts_.emplace();
  std::string bytes = likely_bytes();
  // Alternates between text up to a special token and that token, found by name.
  std::string_view left = bytes;
  while (!left.empty()) {
    size_t special = left.find(kSpecialBegin);
    append_drafts(left.substr(0, special));
    if (special == left.npos) break;
    size_t end = left.find(kSpecialEnd, special);
    if (end == left.npos) break;
    TokenId token =
        compiled_->vocabulary->find_special(left.substr(special + 1, end - special - 1));
    if (token < 0) break;
    drafts_->push_back(token);
    left.remove_prefix(end + 1);
  }
  return *drafts_;
}

void Matcher::append_drafts(std::string_view text) {
  if (!compiled_->tokenize) return;
  // A tokenizer cannot encode an incomplete character: drop it.
  size_t whole = text.size();
  while (whole > 0 && (static_cast<uint8_t>(text[whole - 1]) & 0xc0) == 0x80) --whole;
  if (whole > 0 && static_cast<uint8_t>(text[whole - 1]) >= 0xc0) {
    auto lead = static_cast<uint8_t>(text[whole - 1]);
    size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    whole = whole - 1 + length <= text.size() ? whole - 1 + length : whole - 1;
  }
  text = text.substr(0, whole);
  if (text.empty()) return;
  for (TokenId token : compiled_->tokenize(text)) {
    std::string_view bytes = compiled_->vocabulary->bytes_of(token);
    if (bytes.empty() || !text.starts_with(bytes)) return;
    drafts_->push_back(token);
    text.remove_prefix(bytes.size());
  }
}

}  // namespace banyan
