// Reads tiktoken.model; declared in tokenizer_parts.h.
#include <algorithm>
#include <charconv>
#include <map>

#include "base/base64.h"
#include "base/error.h"
#include "base/quote.h"
#include "text/json_fields.h"
#include "text/tokenizer/byte_level.h"
#include "text/tokenizer/splitter.h"
#include "text/tokenizer/tokenizer_parts.h"

namespace banyan {
namespace {

constexpr size_t kTokenBytesMax = 1024;
// Finding merges is quadratic in a token's length; the squares add up to 13 million for o200k.
constexpr size_t kSquaresMax = size_t{1} << 32;
constexpr TokenId kReservedTokens = 256;

struct RankedToken {
  std::string bytes;
  TokenId rank;
};

Result<std::vector<RankedToken>> read_lines(std::string_view text, const std::string& what) {
  std::vector<RankedToken> tokens;
  size_t squares = 0;
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    const size_t space = line.find(' ');
    if (space == line.npos) return corrupt("{}: line {} has no rank", what, number);
    auto bytes = from_base64(line.substr(0, space));
    if (!bytes || bytes->empty()) {
      return corrupt("{}: line {} does not begin with a base64 token", what, number);
    }
    if (bytes->size() > kTokenBytesMax) {
      return exhausted("{}: line {}: a token of {} bytes; the limit is {}", what, number,
                       bytes->size(), kTokenBytesMax);
    }
    squares += bytes->size() * bytes->size();
    if (squares > kSquaresMax) {
      return exhausted("{}: line {}: too many long tokens to find their merges", what, number);
    }
    TokenId rank = -1;
    const auto [stop, error] =
        std::from_chars(line.data() + space + 1, line.data() + line.size(), rank);
    if (error != std::errc() || stop != line.data() + line.size() || rank < 0) {
      return corrupt("{}: line {}: {} is not an integer rank", what, number,
                     quote(line.substr(space + 1)));
    }
    tokens.push_back({std::move(*bytes), rank});
  }
  if (tokens.empty()) return corrupt("{}: the vocabulary is empty", what);
  return tokens;
}

// tiktoken merges any two neighbours whose bytes together form a token, lowest rank first. Each
// split of a token into two tokens is therefore a merge with that token's rank.
MergeTable merges_of(const std::vector<RankedToken>& tokens, const Vocabulary& vocabulary) {
  MergeTable merges;
  merges.reserve(tokens.size() * 3);
  std::vector<size_t> cuts;
  for (const RankedToken& token : tokens) {
    const std::string_view spelling = vocabulary.spelling(token.rank);
    size_t cut = 0;
    for (size_t i = 0; i + 1 < token.bytes.size(); ++i) {
      cut += byte_level::characters()[static_cast<unsigned char>(token.bytes[i])].size();
      const auto left = vocabulary.find(spelling.substr(0, cut));
      if (!left) continue;
      const auto right = vocabulary.find(spelling.substr(cut));
      if (right) merges.set(*left, *right, {static_cast<uint32_t>(token.rank), token.rank});
    }
  }
  return merges;
}

Status read_special_tokens(const Json& config, const std::string& what, TokenId first,
                           std::vector<AddedToken>& added) {
  const JsonFields fields = TRY(JsonFields::of(config, what));
  std::map<TokenId, std::string> names;
  for (TokenId id = first; id < first + kReservedTokens; ++id) {
    names[id] = fmt::format("<|reserved_token_{}|>", id);
  }
  if (fields.find("added_tokens_decoder") != nullptr) {
    const JsonFields decoder = TRY(fields.object("added_tokens_decoder"));
    for (const auto& [key, value] : decoder.json().items()) {
      TokenId id = -1;
      const auto [stop, error] = std::from_chars(key.data(), key.data() + key.size(), id);
      if (error != std::errc() || stop != key.data() + key.size() || id < first ||
          id > Vocabulary::kIdMax) {
        return corrupt("{}: {} is not an id from {} to {}", decoder.place(), quote(key), first,
                       Vocabulary::kIdMax);
      }
      names[id] = TRY(TRY(decoder.object(key)).string("content"));
    }
  }
  for (auto& [id, name] : names) {
    if (name.empty() || name.size() > AddedToken::kBytesMax) {
      return corrupt("{}: the special token {} has {} bytes; 1 to {} are allowed", what, id,
                     name.size(), AddedToken::kBytesMax);
    }
    added.push_back({.id = id, .content = std::move(name), .special = true});
  }
  return {};
}

// Only the model's Python code contains the pattern, so it is chosen by the name of the class.
Result<std::string_view> pattern_of(const Json& config, const std::string& what) {
  const JsonFields fields = TRY(JsonFields::of(config, what));
  const std::string name = TRY(fields.string("tokenizer_class"));
  if (name == "TikTokenTokenizer") return kimi_pattern();
  return unsupported("{}: the splitting pattern of tokenizer_class {} is not known", what,
                     quote(name));
}

}  // namespace

Result<TokenizerParts> read_tiktoken(std::string_view text, const std::string& what,
                                     const Json& config, const std::string& config_what) {
  if (text.size() > kTokenizerFileBytesMax) {
    return exhausted("{}: {} bytes; the limit is {}", what, text.size(), kTokenizerFileBytesMax);
  }
  const std::string_view pattern = TRY(pattern_of(config, config_what));
  const std::vector<RankedToken> tokens = TRY(read_lines(text, what));
  auto vocabulary = std::make_unique<Vocabulary>();
  vocabulary->reserve(tokens.size(), text.size());
  std::string spelled;
  for (const RankedToken& token : tokens) {
    spelled.clear();
    byte_level::append_spelled(spelled, token.bytes);
    if (auto added = vocabulary->add(spelled, token.rank); !added) {
      return make_error(added.error().code, what + ": " + added.error().message);
    }
  }
  TokenizerParts parts;
  parts.bpe = std::make_unique<Bpe>(
      TRY(Bpe::make(*vocabulary, merges_of(tokens, *vocabulary), {.ignore_merges = true})));
  if (!parts.bpe->takes_bytes()) return corrupt("{}: not every single byte is a token", what);
  TRY(read_special_tokens(config, config_what, vocabulary->id_end(), parts.added));
  parts.vocabulary = std::move(vocabulary);
  parts.pre_tokenizer = TRY(PreTokenizer::make_tiktoken(pattern));
  parts.decoder = Decoder::make_byte_level();
  return parts;
}

}  // namespace banyan
