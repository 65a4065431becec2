#include "text/tokenizer/gguf_tokenizer.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/quote.h"
#include "base/signed.h"
#include "text/tokenizer/splitter.h"
#include "unicode/unicode.h"

namespace banyan {
namespace {

constexpr std::string_view kModel = "tokenizer.ggml.model", kGemma4 = "gemma4";
constexpr std::string_view kTokenList = "tokenizer.ggml.tokens";
constexpr std::string_view kSpaceMark = "\u2581";  // '▁'

constexpr size_t kPieceBytesMax = 512;  // longest piece that is split in all ways

enum TokenType : int64_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6
};

// How each tokenizer splits text, with the patterns of its tokenizer.json.
#define WORDS_OF_LLAMA R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+)"
#define SPACES_AT_LINES R"(|\s*[\r\n]+|\s+(?!\S)|\s+)"
#define O200K_WORD(end)                                                                 \
  R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)" end \
  R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)" end
constexpr std::string_view kLlama3 =
    WORDS_OF_LLAMA R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)" SPACES_AT_LINES;
constexpr std::string_view kQwen2 =
    WORDS_OF_LLAMA R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)" SPACES_AT_LINES;
constexpr std::string_view kQwen35 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N})"
    R"(| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*)" SPACES_AT_LINES;
constexpr std::string_view kO200k = O200K_WORD(
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)?") R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*)" SPACES_AT_LINES;
constexpr std::string_view kTekken =
    O200K_WORD("") R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*)" SPACES_AT_LINES;
constexpr std::string_view kLing =
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*)"
    R"(|\s*[\r\n]|\s+(?!\S)|\s+)";
constexpr std::string_view kSeedCoder =
    WORDS_OF_LLAMA "|\\p{N}{1}| ?[^\\s\\p{L}\\p{N}\r\n]+|\\s*[\r\n]+|\\s+(?!\\S)|\\s+";
constexpr std::string_view kDeepseekDigits = R"(\p{N}{1,3})";
constexpr std::string_view kDeepseekCjk = "[一-龥\u3040-ゟ゠-ヿ]+";
constexpr std::string_view kDeepseekWords = R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^)"
                                            "\r\n"
                                            R"(\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[)"
                                            "\r\n"
                                            R"(]*|\s*[)"
                                            "\r\n"
                                            R"(]+|\s+(?!\S)|\s+)";
#undef WORDS_OF_LLAMA
#undef SPACES_AT_LINES
#undef O200K_WORD

struct GgufPreTokenizer {
  std::string_view name;                          // tokenizer.ggml.pre
  std::array<std::string_view, 3> patterns = {};  // applied in order; none: GPT-2's
  bool digits = false;                            // each digit separately, then GPT-2's pattern
  bool nfc = false;                               // normalize to NFC first
  bool ignore_merges = false;  // a word in the vocabulary is encoded as that token
  bool bos = false;            // prepended, unless the file says otherwise
  bool tiktoken = false;       // splits by its own pattern, merges by rank; ids are ranks
};

constexpr auto kGgufPreTokenizers = std::to_array<GgufPreTokenizer>({
    {.name = "llama-bpe", .patterns = {kLlama3}, .ignore_merges = true, .bos = true},
    {.name = "llama3", .patterns = {kLlama3}, .ignore_merges = true, .bos = true},
    {.name = "llama-v3", .patterns = {kLlama3}, .ignore_merges = true, .bos = true},
    {.name = "falcon3", .patterns = {kLlama3}, .ignore_merges = true, .bos = true},
    {.name = "lfm2", .patterns = {kLlama3}, .ignore_merges = true, .bos = true},
    {.name = "pixtral", .patterns = {kLlama3}, .ignore_merges = true, .bos = true},
    {.name = "dbrx", .patterns = {kLlama3}},
    {.name = "smaug-bpe", .patterns = {kLlama3}},
    {.name = "chatglm-bpe", .patterns = {kLlama3}},
    {.name = "glm4", .patterns = {kLlama3}, .ignore_merges = true},
    {.name = "glm5", .patterns = {kLlama3}, .ignore_merges = true},
    {.name = "qwen2", .patterns = {kQwen2}, .nfc = true},
    {.name = "deepseek-r1-qwen", .patterns = {kQwen2}, .nfc = true},
    {.name = "megrez", .patterns = {kQwen2}},
    {.name = "hunyuan", .patterns = {kQwen2}},
    {.name = "stablelm2", .patterns = {kQwen2}},
    {.name = "solar-open", .patterns = {kQwen2}},
    {.name = "qwen35", .patterns = {kQwen35}, .nfc = true},
    {.name = "gpt-4o", .patterns = {kO200k}, .ignore_merges = true},
    {.name = "llama4", .patterns = {kO200k}},
    {.name = "minimax-m2", .patterns = {kO200k}},
    {.name = "tekken", .patterns = {kTekken}, .ignore_merges = true, .bos = true},
    {.name = "bailingmoe", .patterns = {kLing}},
    {.name = "bailingmoe2", .patterns = {kLing}},
    {.name = "llada-moe", .patterns = {kLing}},
    {.name = "seed-coder", .patterns = {kSeedCoder}},
    {.name = "deepseek-v3", .patterns = {kDeepseekDigits, kDeepseekCjk, kDeepseekWords}},
    {.name = "hunyuan-dense", .patterns = {kDeepseekDigits, kDeepseekCjk, kDeepseekWords}},
    {.name = "joyai-llm", .patterns = {kDeepseekDigits, kDeepseekCjk, kDeepseekWords}},
    {.name = "kimi-k2", .tiktoken = true},
    {.name = "gpt-2"},
    {.name = "phi-2"},
    {.name = "gigachat"},
    {.name = "mellum"},
    {.name = "olmo"},
    {.name = "mpt"},
    {.name = "jais"},
    {.name = "exaone4"},
    {.name = "granite-docling"},
    {.name = "trillion"},
    {.name = "starcoder", .digits = true},
    {.name = "refact", .digits = true},
    {.name = "command-r", .digits = true},
    {.name = "smollm", .digits = true},
    {.name = "codeshell", .digits = true},
    {.name = "exaone", .digits = true},
    {.name = "minerva-7b", .digits = true},
    {.name = "mellum2", .digits = true},
});

Result<const GgufPreTokenizer*> find_pre_tokenizer(const GgufPairs& pairs) {
  constexpr std::string_view kKey = "tokenizer.ggml.pre";
  std::string_view name = TRY(pairs.text(kKey)).value_or("default");
  auto found = std::ranges::find(kGgufPreTokenizers, name, &GgufPreTokenizer::name);
  if (found != std::end(kGgufPreTokenizers)) return &*found;
  std::vector<std::string_view> names;
  for (const GgufPreTokenizer& kind : kGgufPreTokenizers) names.push_back(kind.name);
  return unsupported("{}: {} {} is not supported; supported: {}", pairs.path(), kKey, quote(name),
                     fmt::join(names, ", "));
}

Json pre_tokenizer_json(const GgufPreTokenizer& kind) {
  Json steps = Json::array();
  bool gpt2 = kind.patterns[0].empty();
  if (kind.digits) steps.push_back({{"type", "Digits"}, {"individual_digits", true}});
  for (std::string_view pattern : kind.patterns) {
    if (pattern.empty()) continue;
    steps.push_back({{"type", "Split"},
                     {"pattern", {{"Regex", pattern}}},
                     {"behavior", "Isolated"},
                     {"invert", false}});
  }
  steps.push_back({{"type", "ByteLevel"},
                   {"add_prefix_space", false},
                   {"trim_offsets", true},
                   {"use_regex", gpt2}});
  return {{"type", "Sequence"}, {"pretokenizers", steps}};
}

// Special tokens that the converter declares user-defined, so that llama.cpp shows them.
constexpr auto kShownByGemma4 =
    std::to_array<std::string_view>({"<|channel>", "<channel|>", "<|tool_call>", "<tool_call|>",
                                     "<|tool_response>", "<tool_response|>", "<|\"|>"});

// The vocabulary as stored in the file.
struct GgufTokens {
  std::vector<std::string_view> texts;
  std::vector<int64_t> types;  // one per token

  bool is_added(size_t id) const {
    return types[id] == kControl || types[id] == kUserDefined || types[id] == kUnknown;
  }
};

Result<GgufTokens> read_tokens(const GgufPairs& pairs) {
  GgufTokens tokens{TRY(pairs.texts(kTokenList)), TRY(pairs.integers("tokenizer.ggml.token_type"))};
  if (tokens.texts.empty()) return corrupt("{}: {} is empty or missing", pairs.path(), kTokenList);
  if (tokens.texts.size() > Vocabulary::kIdMax) {
    return exhausted("{}: {} has {} entries; the limit is {}", pairs.path(), kTokenList,
                     tokens.texts.size(), Vocabulary::kIdMax);
  }
  if (tokens.types.empty()) tokens.types.assign(tokens.texts.size(), kNormal);
  if (tokens.types.size() != tokens.texts.size()) {
    return corrupt("{}: tokenizer.ggml.token_type has {} entries for {} tokens", pairs.path(),
                   tokens.types.size(), tokens.texts.size());
  }
  for (size_t id = 0; id < tokens.texts.size(); ++id) {
    if (auto at = unicode::first_invalid(tokens.texts[id])) {
      return corrupt("{}: {}: token {} is not UTF-8 at byte {}", pairs.path(), kTokenList, id, *at);
    }
    if (tokens.types[id] < kNormal || tokens.types[id] > kByte) {
      return corrupt("{}: tokenizer.ggml.token_type: {} of token {} is not from 1 to 6",
                     pairs.path(), tokens.types[id], id);
    }
  }
  if (TRY(pairs.text(kModel)) != kGemma4) return tokens;
  for (std::string_view shown : kShownByGemma4) {
    auto found = std::ranges::find(tokens.texts, shown);
    if (found != tokens.texts.end()) tokens.types[as_size(found - tokens.texts.begin())] = kControl;
  }
  return tokens;
}

// Adds ordinary tokens, then control and added tokens. The latter may share a spelling with an
// ordinary token, which merges need.
Status fill_vocabulary(const GgufPairs& pairs, const GgufTokens& tokens, TokenizerParts& parts) {
  auto vocabulary = std::make_unique<Vocabulary>();
  vocabulary->reserve(tokens.texts.size(), tokens.texts.size() * 8);
  for (size_t id = 0; id < tokens.texts.size(); ++id) {
    if (tokens.is_added(id) || tokens.types[id] == kUnused) continue;
    auto added = vocabulary->add(tokens.texts[id], static_cast<TokenId>(id));
    if (added) continue;
    return make_error(added.error().code,
                      fmt::format("{}: {}: {}", pairs.path(), kTokenList, added.error().message));
  }
  for (size_t id = 0; id < tokens.texts.size(); ++id) {
    if (!tokens.is_added(id) || tokens.texts[id].empty()) continue;
    std::string_view text = tokens.texts[id];
    if (text.size() > AddedToken::kBytesMax) {
      return exhausted("{}: {}: token {} has {} bytes; the limit is {}", pairs.path(), kTokenList,
                       id, text.size(), AddedToken::kBytesMax);
    }
    if (!vocabulary->find(text)) TRY(vocabulary->add(text, static_cast<TokenId>(id)));
    parts.added.push_back({.id = static_cast<TokenId>(id),
                           .content = std::string(text),
                           .special = tokens.types[id] != kUserDefined});
  }
  parts.vocabulary = std::move(vocabulary);
  return {};
}

Result<MergeTable> read_merges(const GgufPairs& pairs, const Vocabulary& vocabulary) {
  constexpr std::string_view kKey = "tokenizer.ggml.merges";
  std::vector<std::string_view> lines = TRY(pairs.texts(kKey));
  if (!pairs.has(kKey)) return corrupt("{}: {} is missing", pairs.path(), kKey);
  MergeTable merges;
  merges.reserve(lines.size());
  std::string joined;
  for (size_t rank = 0; rank < lines.size(); ++rank) {
    size_t space = lines[rank].find(' ', 1);
    if (space == std::string_view::npos) {
      return corrupt("{}: {}: entry {} is not a pair of tokens: {}", pairs.path(), kKey, rank,
                     quote(lines[rank]));
    }
    std::string_view left = lines[rank].substr(0, space), right = lines[rank].substr(space + 1);
    joined.assign(left).append(right);
    auto left_id = vocabulary.find(left), right_id = vocabulary.find(right);
    auto joined_id = vocabulary.find(joined);
    if (!left_id || !right_id || !joined_id) {
      return corrupt("{}: {}: entry {}, {}, uses or produces a token that is not in the vocabulary",
                     pairs.path(), kKey, rank, quote(lines[rank]));
    }
    merges.set(*left_id, *right_id, {static_cast<uint32_t>(rank), *joined_id});
  }
  return merges;
}

// Calls visit(token, left, right) for each split of a token into two tokens.
template <class Visit>
void for_cuts(const GgufTokens& tokens, const Vocabulary& vocabulary, const Visit& visit) {
  for (size_t id = 0; id < tokens.texts.size(); ++id) {
    std::string_view text = tokens.texts[id];
    if (tokens.types[id] != kNormal || text.size() > kPieceBytesMax) continue;
    for (size_t at = 1; at < text.size(); ++at) {
      auto left = vocabulary.find(text.substr(0, at));
      auto right = left ? vocabulary.find(text.substr(at)) : std::nullopt;
      if (right) visit(static_cast<TokenId>(id), *left, *right);
    }
  }
}

// tiktoken merges any two neighbours that together form a token, lowest rank first. (Such a file
// lists only one merge per token.)
MergeTable merges_of_ranks(const GgufTokens& tokens, const Vocabulary& vocabulary) {
  MergeTable merges;
  merges.reserve(tokens.texts.size() * 3);
  for_cuts(tokens, vocabulary, [&](TokenId id, TokenId left, TokenId right) {
    merges.set(left, right, {static_cast<uint32_t>(id), id});
  });
  return merges;
}

// SentencePiece merges the two neighbours whose joint piece has the highest score. Each split of a
// piece into two pieces is a merge, in the order of Hugging Face's converter.
Result<MergeTable> merges_of_scores(const GgufPairs& pairs, const GgufTokens& tokens,
                                    const Vocabulary& vocabulary) {
  constexpr std::string_view kKey = "tokenizer.ggml.scores";
  std::vector<double> scores = TRY(pairs.numbers(kKey));
  if (scores.size() != tokens.texts.size()) {
    return corrupt("{}: {} has {} entries for {} tokens", pairs.path(), kKey, scores.size(),
                   tokens.texts.size());
  }
  using Cut = std::tuple<double, TokenId, TokenId, TokenId>;  // negated score, piece, left, right
  std::vector<Cut> cuts;
  for_cuts(tokens, vocabulary, [&](TokenId id, TokenId left, TokenId right) {
    cuts.emplace_back(-scores[id], id, left, right);
  });
  std::ranges::sort(cuts);
  MergeTable merges;
  merges.reserve(cuts.size());
  for (size_t rank = 0; rank < cuts.size(); ++rank) {
    const auto [score, piece, left, right] = cuts[rank];
    merges.set(left, right, {static_cast<uint32_t>(rank), piece});
  }
  return merges;
}

Status make_byte_level(const GgufPairs& pairs, const GgufPreTokenizer& kind,
                       TokenizerParts& parts) {
  MergeTable merges = TRY(read_merges(pairs, *parts.vocabulary));
  parts.bpe = std::make_unique<Bpe>(
      TRY(Bpe::make(*parts.vocabulary, std::move(merges), {.ignore_merges = kind.ignore_merges})));
  parts.pre_tokenizer = TRY(PreTokenizer::make(pre_tokenizer_json(kind), pairs.path()));
  if (kind.nfc) parts.normalizer = TRY(Normalizer::make({{"type", "NFC"}}, pairs.path()));
  parts.decoder = Decoder::make_byte_level();
  return {};
}

Status make_tiktoken(const GgufTokens& tokens, TokenizerParts& parts) {
  parts.bpe = std::make_unique<Bpe>(TRY(Bpe::make(
      *parts.vocabulary, merges_of_ranks(tokens, *parts.vocabulary), {.ignore_merges = true})));
  parts.pre_tokenizer = TRY(PreTokenizer::make_tiktoken(kimi_pattern()));
  parts.decoder = Decoder::make_byte_level();
  return {};
}

// SentencePiece's, with a space before the text if `prefix`.
Status make_of_pieces(const GgufPairs& pairs, const GgufTokens& tokens, MergeTable merges,
                      bool prefix, TokenizerParts& parts) {
  BpeOptions options{.fuse_unk = true, .byte_fallback = true};
  auto unknown = std::ranges::find(tokens.types, kUnknown);
  if (unknown != tokens.types.end()) {
    options.unk_token = tokens.texts[unknown - tokens.types.begin()];
  }
  parts.bpe = std::make_unique<Bpe>(
      TRY(Bpe::make(*parts.vocabulary, std::move(merges), std::move(options))));
  Json space = {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", kSpaceMark}};
  Json normalizers = Json::array();
  if (prefix) normalizers.push_back({{"type", "Prepend"}, {"prepend", kSpaceMark}});
  normalizers.push_back(space);
  parts.normalizer =
      TRY(Normalizer::make({{"type", "Sequence"}, {"normalizers", normalizers}}, pairs.path()));
  Json decoders = Json::array();
  decoders.push_back(
      {{"type", "Replace"}, {"pattern", {{"String", kSpaceMark}}}, {"content", " "}});
  decoders.push_back({{"type", "ByteFallback"}});
  decoders.push_back({{"type", "Fuse"}});
  if (prefix) {
    decoders.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  }
  parts.decoder = TRY(Decoder::make({{"type", "Sequence"}, {"decoders", decoders}}, pairs.path()));
  return {};
}

// The id under "tokenizer.ggml.<name>_token_id".
Result<std::optional<TokenId>> read_id(const GgufPairs& pairs, std::string_view name,
                                       size_t tokens) {
  std::string key = fmt::format("tokenizer.ggml.{}_token_id", name);
  std::optional<int64_t> id = TRY(pairs.integer(key));
  if (!id || *id == -1 || *id == UINT32_MAX)
    return std::nullopt;  // some files write these for "none"
  if (*id >= 0 && std::cmp_less(*id, tokens)) return static_cast<TokenId>(*id);
  return corrupt("{}: {} is {}, but the vocabulary has {} tokens", pairs.path(), key, *id, tokens);
}

Status add_around(const GgufPairs& pairs, bool bos, bool eos, size_t tokens,
                  PostProcessor& around) {
  auto add = [&](bool wanted, std::string_view name, std::vector<TokenId>& to) -> Status {
    if (!wanted) return {};
    if (auto id = TRY(read_id(pairs, name, tokens))) to.push_back(*id);
    return {};
  };
  TRY(add(bos, "bos", around.before));
  return add(eos, "eos", around.after);
}

// Spellings of end-of-turn tokens in published vocabularies, used in addition to the ids in
// metadata.
constexpr std::array<std::string_view, 21> kEnds = {"<|eot_id|>",
                                                    "<|im_end|>",
                                                    "<|end|>",
                                                    "<|return|>",
                                                    "<|call|>",
                                                    "<|flush|>",
                                                    "<|calls|>",
                                                    "<end_of_turn>",
                                                    "<|endoftext|>",
                                                    "<|eom_id|>",
                                                    "<EOT>",
                                                    "_<EOT>",
                                                    "[EOT]",
                                                    "[EOS]",
                                                    "<|end_of_text|>",
                                                    "<end_of_utterance>",
                                                    "<｜end▁of▁sentence｜>",
                                                    "[e~[",
                                                    "<eos>",
                                                    "<turn|>",
                                                    "<|tool_response>"};

Result<std::vector<TokenId>> read_ends(const GgufPairs& pairs, const GgufTokens& tokens) {
  std::vector<TokenId> ends;
  auto add = [&](TokenId id) {
    if (std::ranges::find(ends, id) == ends.end()) ends.push_back(id);
  };
  for (std::string_view name : {"eos", "eot", "eom"}) {
    if (auto id = TRY(read_id(pairs, name, tokens.texts.size()))) add(*id);
  }
  bool has_return = std::ranges::find(tokens.texts, "<|return|>") != tokens.texts.end();
  for (size_t id = 0; id < tokens.texts.size(); ++id) {
    std::string_view text = tokens.texts[id];
    if (!tokens.is_added(id) || std::ranges::find(kEnds, text) == kEnds.end()) continue;
    if (text == "<|end|>" && has_return) continue;  // harmony: ends a message, not a turn
    add(static_cast<TokenId>(id));
  }
  return ends;
}

}  // namespace

bool has_gguf_tokenizer(const GgufPairs& pairs) {
  auto model = pairs.text(kModel);
  return !model || (*model && **model != "no_vocab" && **model != "none");
}

Result<TokenizerParts> read_gguf_tokenizer(const GgufPairs& pairs) {
  std::string_view model = TRY(pairs.text(kModel)).value_or("");
  if (model != "gpt2" && model != "llama" && model != kGemma4) {
    return unsupported("{}: {} {} is not supported; supported: gpt2, llama, {}", pairs.path(),
                       kModel, quote(model), kGemma4);
  }
  GgufTokens tokens = TRY(read_tokens(pairs));
  TokenizerParts parts;
  TRY(fill_vocabulary(pairs, tokens, parts));
  bool bos = true;
  if (model == "gpt2") {
    const GgufPreTokenizer* kind = TRY(find_pre_tokenizer(pairs));
    TRY(kind->tiktoken ? make_tiktoken(tokens, parts) : make_byte_level(pairs, *kind, parts));
    bos = kind->bos;
  } else if (model == "llama") {
    bool prefix = TRY(pairs.flag("tokenizer.ggml.add_space_prefix")).value_or(true);
    MergeTable merges = TRY(merges_of_scores(pairs, tokens, *parts.vocabulary));
    TRY(make_of_pieces(pairs, tokens, std::move(merges), prefix, parts));
  } else {
    MergeTable merges = TRY(read_merges(pairs, *parts.vocabulary));
    TRY(make_of_pieces(pairs, tokens, std::move(merges), false, parts));
  }
  // Early files of Gemma 4 deny it.
  bos = TRY(pairs.flag("tokenizer.ggml.add_bos_token")).value_or(bos) || model == kGemma4;
  bool eos = TRY(pairs.flag("tokenizer.ggml.add_eos_token")).value_or(false);
  TRY(add_around(pairs, bos, eos, tokens.texts.size(), parts.post_processor));
  return parts;
}

Result<TokenizerConfig> read_gguf_tokenizer_config(const GgufPairs& pairs) {
  TokenizerConfig config;
  config.json = Json::object();
  if (!has_gguf_tokenizer(pairs)) return config;
  GgufTokens tokens = TRY(read_tokens(pairs));
  config.bos_id = TRY(read_id(pairs, "bos", tokens.texts.size()));
  config.pad_id = TRY(read_id(pairs, "padding", tokens.texts.size()));
  config.special.eos_ids = TRY(read_ends(pairs, tokens));
  if (auto id = TRY(read_id(pairs, "unknown", tokens.texts.size()))) {
    std::string text(tokens.texts[*id]);
    config.special.named["unk_token"] = text;
    config.special.unk = SpecialToken{std::move(text), *id};
  }
  if (auto source = TRY(pairs.text("tokenizer.chat_template"))) config.chat_template = *source;
  return config;
}

}  // namespace banyan
