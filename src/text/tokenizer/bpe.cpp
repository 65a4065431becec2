#include "text/tokenizer/bpe.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/quote.h"
#include "text/tokenizer/byte_level.h"
#include "text/tokenizer/long_word.h"
#include "unicode/unicode.h"

namespace banyan {
namespace {

constexpr std::string_view kMetaspace = "\u2581";  // '▁'

// Up to this length, scanning for the lowest rank at each merge is faster than bookkeeping.
constexpr size_t kShortWordSymbols = 64;

uint64_t key_of(TokenId left, TokenId right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

// Merges pairs in `symbols` in place; `merges` is scratch memory. Quadratic in the word's length.
void merge_short_word(const MergeTable& table, std::vector<TokenId>& symbols,
                      std::vector<Merge>& merges) {
  size_t count = symbols.size();
  merges.resize(count);
  for (size_t i = 0; i + 1 < count; ++i) merges[i] = table.find(symbols[i], symbols[i + 1]);
  while (count > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < count; ++i) {
      if (merges[i].rank < merges[best].rank) best = i;
    }
    if (merges[best].rank == UINT32_MAX) break;
    symbols[best] = merges[best].id;
    --count;
    for (size_t i = best + 1; i < count; ++i) {
      symbols[i] = symbols[i + 1];
      merges[i] = merges[i + 1];
    }
    if (best + 1 < count) merges[best] = table.find(symbols[best], symbols[best + 1]);
    if (best > 0) merges[best - 1] = table.find(symbols[best - 1], symbols[best]);
  }
  symbols.resize(count);
}

bool ends_with_metaspace(std::string_view text) {
  return text.ends_with(kMetaspace);
}

}  // namespace

size_t MergeTable::slot_of(uint64_t pair) const {
  size_t at = hash_number(pair) & (slots_.size() - 1);
  while (slots_[at].pair != pair && slots_[at].pair != kEmpty) at = (at + 1) & (slots_.size() - 1);
  return at;
}

void MergeTable::reserve(size_t merges) {
  std::vector<Slot> old(std::bit_ceil(std::max<size_t>(merges, 8) * 2));
  old.swap(slots_);
  for (const Slot& slot : old) {
    if (slot.pair != kEmpty) slots_[slot_of(slot.pair)] = slot;
  }
}

void MergeTable::set(TokenId left, TokenId right, Merge merge) {
  if ((count_ + 1) * 2 > slots_.size()) reserve((count_ + 1) * 2);
  Slot& slot = slots_[slot_of(key_of(left, right))];
  if (slot.pair == kEmpty) ++count_;
  slot = {key_of(left, right), merge};
}

Merge MergeTable::find(TokenId left, TokenId right) const {
  if (slots_.empty()) return {};
  return slots_[slot_of(key_of(left, right))].merge;
}

Result<Bpe> Bpe::make(const Vocabulary& vocabulary, MergeTable merges, BpeOptions options) {
  Bpe bpe(vocabulary);
  bpe.merges_ = std::move(merges);
  bpe.options_ = std::move(options);
  for (size_t byte = 0; byte < 256; ++byte) {
    bpe.byte_symbols_[byte] = vocabulary.find(byte_level::characters()[byte]).value_or(-1);
    bpe.fallback_bytes_[byte] = vocabulary.find(fmt::format("<0x{:02X}>", byte)).value_or(-1);
  }
  for (size_t code = 0; code < 128; ++code) {
    const char character = static_cast<char>(code);
    bpe.ascii_symbols_[code] = vocabulary.find({&character, 1}).value_or(-1);
  }
  const bool affixes =
      !bpe.options_.continuing_subword_prefix.empty() || !bpe.options_.end_of_word_suffix.empty();
  bpe.takes_bytes_ =
      !affixes && std::ranges::find(bpe.byte_symbols_, -1) == bpe.byte_symbols_.end();
  if (bpe.options_.unk_token) {
    bpe.unk_ = vocabulary.find(*bpe.options_.unk_token).value_or(-1);
  }
  if (!affixes) bpe.find_metaspace_boundaries();
  return bpe;
}

void Bpe::find_metaspace_boundaries() {
  if (!vocabulary_->find(kMetaspace)) return;
  cut_after_byte_.fill(true);
  // If unknown characters are dropped, the text before one becomes adjacent to the "▁" after it.
  const bool all_bytes = std::ranges::find(fallback_bytes_, -1) == fallback_bytes_.end();
  const bool leaves_out = unk_ < 0 && !(options_.byte_fallback && all_bytes);
  merges_.for_each_pair([&](TokenId left, TokenId right) {
    const std::string_view before = vocabulary_->spelling(left);
    if (!vocabulary_->spelling(right).starts_with(kMetaspace) || before.empty()) return;
    if (ends_with_metaspace(before)) return;
    cut_after_byte_[static_cast<unsigned char>(before.back())] = false;
    // Tokens whose spelling differs from the text they encode.
    if (leaves_out || left == unk_ ||
        std::ranges::find(fallback_bytes_, left) != fallback_bytes_.end()) {
      cut_after_byte_.fill(false);
    }
  });
}

std::optional<TokenId> Bpe::whole_word(std::string_view word, bool raw_bytes) const {
  if (word.size() > vocabulary_->longest_bytes()) return std::nullopt;
  if (!raw_bytes) return vocabulary_->find(word);
  std::string spelled;
  byte_level::append_spelled(spelled, word);
  return vocabulary_->find(spelled);
}

Status Bpe::encode(std::string_view word, bool raw_bytes, BpeScratch& scratch,
                   std::vector<TokenId>& tokens) const {
  CHECK(!raw_bytes || takes_bytes_);
  auto encode_part = [&](std::string_view part) -> Status {
    if (encode_whole(part, raw_bytes, scratch, tokens)) return {};
    return invalid_argument(
        "a character of {} is not in the vocabulary, and neither is model.unk_token {}",
        quote(part), quote(*options_.unk_token));
  };
  if (raw_bytes || word.size() <= BpeScratch::CachedWord::kBytesMax) return encode_part(word);
  if (options_.ignore_merges) {
    if (auto id = whole_word(word, raw_bytes)) return tokens.push_back(*id), Status();
  }
  size_t start = 0;
  for (size_t at = word.find(kMetaspace, 1); at != word.npos; at = word.find(kMetaspace, at + 1)) {
    if (!cut_after_byte_[static_cast<unsigned char>(word[at - 1])]) continue;
    if (ends_with_metaspace(word.substr(0, at))) continue;
    TRY(encode_part(word.substr(start, at - start)));
    start = at;
  }
  return encode_part(word.substr(start));
}

bool Bpe::encode_whole(std::string_view word, bool raw_bytes, BpeScratch& scratch,
                       std::vector<TokenId>& tokens) const {
  using CachedWord = BpeScratch::CachedWord;
  if (word.empty()) return true;
  if (word.size() > CachedWord::kBytesMax) {
    return encode_uncached(word, raw_bytes, scratch, tokens);
  }
  CachedWord& cached = scratch.cache_[hash_bytes(word) & (BpeScratch::kCacheWords - 1)];
  if (cached.size == word.size() && std::memcmp(cached.bytes, word.data(), word.size()) == 0) {
    tokens.insert(tokens.end(), cached.tokens, cached.tokens + cached.count);
    return true;
  }
  const size_t before = tokens.size();
  if (!encode_uncached(word, raw_bytes, scratch, tokens)) return false;
  const size_t count = tokens.size() - before;
  if (count > CachedWord::kTokensMax) return true;
  cached.size = static_cast<uint8_t>(word.size());
  cached.count = static_cast<uint8_t>(count);
  std::memcpy(cached.bytes, word.data(), word.size());
  std::copy_n(tokens.begin() + before, count, cached.tokens);
  return true;
}

bool Bpe::encode_uncached(std::string_view word, bool raw_bytes, BpeScratch& scratch,
                          std::vector<TokenId>& tokens) const {
  if (options_.ignore_merges) {
    if (auto id = whole_word(word, raw_bytes)) return tokens.push_back(*id), true;
  }
  std::vector<TokenId>& symbols = scratch.symbols_;
  symbols.clear();
  if (!symbols_of(word, raw_bytes, symbols)) return false;
  if (symbols.size() <= kShortWordSymbols) {
    merge_short_word(merges_, symbols, scratch.merges_);
  } else {
    merge_long_word(merges_, symbols);
  }
  tokens.insert(tokens.end(), symbols.begin(), symbols.end());
  return true;
}

bool Bpe::symbols_of(std::string_view word, bool raw_bytes, std::vector<TokenId>& symbols) const {
  if (raw_bytes) {
    for (char byte : word) symbols.push_back(byte_symbols_[static_cast<unsigned char>(byte)]);
    return true;
  }
  const auto& prefix = options_.continuing_subword_prefix;
  const auto& suffix = options_.end_of_word_suffix;
  std::string affixed;
  bool unk_pending = false;
  for (size_t at = 0; at < word.size();) {
    const size_t size = unicode::decode(word.data() + at).size;
    std::string_view text = word.substr(at, size);
    const bool last = at + size == word.size();
    if ((at > 0 && !prefix.empty()) || (last && !suffix.empty())) {
      affixed = fmt::format("{}{}{}", at > 0 ? prefix : "", text, last ? suffix : "");
      text = affixed;
    }
    at += size;
    const TokenId id = text.size() == 1 ? ascii_symbols_[static_cast<unsigned char>(text[0])]
                                        : vocabulary_->find(text).value_or(-1);
    if (id < 0 && options_.byte_fallback && add_fallback_bytes(text, symbols)) continue;
    if (id < 0 && unk_ < 0 && options_.unk_token) return false;
    if (unk_pending && (id >= 0 || !options_.fuse_unk)) symbols.push_back(unk_);
    unk_pending = id < 0 && unk_ >= 0;
    if (id >= 0) symbols.push_back(id);
  }
  if (unk_pending) symbols.push_back(unk_);
  return true;
}

bool Bpe::add_fallback_bytes(std::string_view text, std::vector<TokenId>& symbols) const {
  for (char byte : text) {
    if (fallback_bytes_[static_cast<unsigned char>(byte)] < 0) return false;
  }
  for (char byte : text) symbols.push_back(fallback_bytes_[static_cast<unsigned char>(byte)]);
  return true;
}

}  // namespace banyan
