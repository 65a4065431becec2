#include "engine/drafters/text_index.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/signed.h"

namespace banyan {
namespace {

constexpr int64_t kSlotsMin = 256, kSlotsMax = int64_t{1} << 16;
constexpr int kLinksMax = 32;  // followed per lookup

}  // namespace

TextIndex::TextIndex(int64_t tokens_expected)
    : newest_(std::bit_ceil(as_size(std::clamp<int64_t>(tokens_expected, kSlotsMin, kSlotsMax)))) {
  tokens_.reserve(as_size(tokens_expected));
  before_.reserve(as_size(tokens_expected));
}

size_t TextIndex::slot(std::span<const TokenId> tokens) const {
  uint64_t hash = tokens.size();
  for (TokenId token : tokens) {
    hash = (hash ^ static_cast<uint32_t>(token)) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
  }
  return hash & (newest_.size() - 1);
}

void TextIndex::append(std::span<const TokenId> tokens) {
  for (TokenId token : tokens) {
    tokens_.push_back(token);
    auto end = narrow<int32_t>(tokens_.size());
    std::span<const TokenId> text = tokens_;
    Links links;
    if (end >= 2) links.two = std::exchange(newest_[slot(text.last(2))].two, end);
    if (end >= 4) links.four = std::exchange(newest_[slot(text.last(4))].four, end);
    before_.push_back(links);
  }
}

int64_t TextIndex::common_length(std::span<const TokenId> context, int64_t end) const {
  int64_t most = std::min({std::ssize(context), end, kContextMax}), length = 0;
  while (length < most) {
    TokenId mine = tokens_[end - 1 - length];
    if (mine == kSeparator || mine != context[context.size() - 1 - length]) {
      break;
    }
    ++length;
  }
  return length;
}

std::span<TextIndex::Match> TextIndex::follow(Chain chain, int64_t tokens,
                                              std::span<const TokenId> context, int64_t except,
                                              std::span<Match, kMatchesMax> out) const {
  size_t found = 0;
  if (std::ssize(context) < tokens) return {};
  int64_t end = newest_[slot(context.last(as_size(tokens)))].*chain;
  for (int i = 0; i < kLinksMax && end > 0 && found < out.size(); ++i) {
    int64_t length = end == except ? 0 : common_length(context, end);
    if (length >= tokens) out[found++] = {end, length};
    end = at(before_, end - 1).*chain;
  }
  return out.first(found);
}

std::span<TextIndex::Match> TextIndex::find(std::span<const TokenId> context, int64_t except,
                                            std::span<Match, kMatchesMax> out) const {
  std::span<Match> matches = follow(&Links::four, 4, context, except, out);
  return matches.empty() ? follow(&Links::two, 2, context, except, out) : matches;
}

}  // namespace banyan
