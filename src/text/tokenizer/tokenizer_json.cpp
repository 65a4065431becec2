// Reads tokenizer.json; declared in tokenizer_parts.h.
#include <simdjson.h>

#include <unordered_map>

#include "base/error.h"
#include "base/quote.h"
#include "text/json_fields.h"
#include "text/tokenizer/tokenizer_parts.h"

namespace banyan {
namespace {

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;

constexpr size_t kAddedTokensMax = 1 << 20;

// A view of an object in the document that adds its location to errors.
struct Section {
  object fields;
  std::string place;

  // Null if the key is absent or its value is null.
  std::optional<element> find(std::string_view key) const {
    element value;
    if (fields.at_key(key).get(value) != simdjson::SUCCESS || value.is_null()) return std::nullopt;
    return value;
  }

  template <class T>
  Result<T> get(std::string_view key, std::string_view expected) const {
    const auto value = find(key);
    if (!value) return corrupt("{}: \"{}\" is missing ({} is expected)", place, key, expected);
    T result;
    if (value->get(result) != simdjson::SUCCESS) {
      return corrupt("{}: \"{}\" is not {}", place, key, expected);
    }
    return result;
  }

  Result<bool> boolean_or(std::string_view key, bool fallback) const {
    if (!find(key)) return fallback;
    return get<bool>(key, "true or false");
  }

  Result<std::string> string_or(std::string_view key, std::string fallback) const {
    if (!find(key)) return fallback;
    return std::string(TRY(get<std::string_view>(key, "a string")));
  }
};

// Copies a small part of the document to the form that the makers of steps read.
Result<Json> small_part(const Section& root, std::string_view key) {
  const auto value = root.find(key);
  if (!value) return Json(nullptr);
  return parse_json(simdjson::minify(*value), fmt::format("{}: {}", root.place, key));
}

Status read_vocabulary(const Section& model, Vocabulary& vocabulary) {
  const auto vocab = TRY(model.get<object>("vocab", "an object of tokens and ids"));
  size_t bytes = 0, count = 0;
  for (const auto& field : vocab) bytes += field.key.size(), ++count;
  if (count == 0) return corrupt("{}: the vocabulary is empty", model.place);
  vocabulary.reserve(count, bytes);
  for (const auto& field : vocab) {
    int64_t id = 0;
    if (field.value.get(id) != simdjson::SUCCESS) {
      return corrupt("{}: vocab: the id of {} is not an integer in range", model.place,
                     quote(field.key));
    }
    if (id < 0 || id > Vocabulary::kIdMax) {
      return corrupt("{}: vocab: the token {} has id {}; ids go from 0 to {}", model.place,
                     quote(field.key), id, Vocabulary::kIdMax);
    }
    if (auto added = vocabulary.add(field.key, static_cast<TokenId>(id)); !added) {
      return make_error(added.error().code, model.place + ": vocab: " + added.error().message);
    }
  }
  return {};
}

// Reads one merge, either "left right" or ["left", "right"].
Result<std::pair<std::string_view, std::string_view>> read_merge(const Section& model,
                                                                 const element& merge,
                                                                 size_t index) {
  std::string_view left, right, line;
  array pair;
  if (merge.get(line) == simdjson::SUCCESS) {
    const size_t space = line.find(' ');
    if (space != line.npos && line.find(' ', space + 1) == line.npos) {
      return std::pair(line.substr(0, space), line.substr(space + 1));
    }
  } else if (merge.get(pair) == simdjson::SUCCESS && pair.size() == 2 &&
             pair.at(0).get(left) == simdjson::SUCCESS &&
             pair.at(1).get(right) == simdjson::SUCCESS) {
    return std::pair(left, right);
  }
  return corrupt("{}: merges: entry {} is not a pair of tokens: {}", model.place, index,
                 quote(simdjson::minify(merge)));
}

Status read_merges(const Section& model, const Vocabulary& vocabulary, size_t prefix_size,
                   MergeTable& merges) {
  const auto list = TRY(model.get<array>("merges", "an array of merges"));
  merges.reserve(list.size());
  uint32_t rank = 0;
  std::string joined;
  auto id_of = [&](std::string_view token) -> Result<TokenId> {
    if (auto id = vocabulary.find(token)) return *id;
    return corrupt("{}: merges: entry {} needs the token {}, which is not in the vocabulary",
                   model.place, rank, quote(token));
  };
  for (const element& merge : list) {
    std::string_view line;
    if (merge.get(line) == simdjson::SUCCESS && line.starts_with("#version")) continue;
    const auto [left, right] = TRY(read_merge(model, merge, rank));
    if (right.size() < prefix_size) {
      return corrupt("{}: merges: entry {}: {} is shorter than continuing_subword_prefix",
                     model.place, rank, quote(right));
    }
    joined.assign(left).append(right.substr(prefix_size));
    const TokenId left_id = TRY(id_of(left)), right_id = TRY(id_of(right));
    merges.set(left_id, right_id, {rank, TRY(id_of(joined))});
    ++rank;
  }
  return {};
}

Status read_model(const Section& root, TokenizerParts& parts) {
  const Section model{TRY(root.get<object>("model", "an object")), root.place + ": model"};
  const std::string type = TRY(model.string_or("type", "BPE"));
  if (type != "BPE") {
    return unsupported("{}: {} is not supported; the tokenizer must be a BPE", model.place,
                       quote(type));
  }
  if (const auto dropout = model.find("dropout")) {
    double value = 0;
    if (dropout->get(value) != simdjson::SUCCESS || value != 0) {
      return unsupported("{}: dropout {} is not supported", model.place,
                         quote(simdjson::minify(*dropout)));
    }
  }
  BpeOptions options;
  if (model.find("unk_token")) options.unk_token = TRY(model.string_or("unk_token", ""));
  options.fuse_unk = TRY(model.boolean_or("fuse_unk", false));
  options.byte_fallback = TRY(model.boolean_or("byte_fallback", false));
  options.ignore_merges = TRY(model.boolean_or("ignore_merges", false));
  options.continuing_subword_prefix = TRY(model.string_or("continuing_subword_prefix", ""));
  options.end_of_word_suffix = TRY(model.string_or("end_of_word_suffix", ""));

  auto vocabulary = std::make_unique<Vocabulary>();
  TRY(read_vocabulary(model, *vocabulary));
  MergeTable merges;
  TRY(read_merges(model, *vocabulary, options.continuing_subword_prefix.size(), merges));
  auto bpe = Bpe::make(*vocabulary, std::move(merges), std::move(options));
  if (!bpe) return make_error(bpe.error().code, root.place + ": " + bpe.error().message);
  parts.bpe = std::make_unique<Bpe>(std::move(*bpe));
  parts.vocabulary = std::move(vocabulary);
  return {};
}

Result<AddedToken> read_added_token(const Section& fields) {
  AddedToken token;
  token.content = TRY(fields.get<std::string_view>("content", "a string"));
  token.special = TRY(fields.boolean_or("special", false));
  token.normalized = TRY(fields.boolean_or("normalized", !token.special));
  token.single_word = TRY(fields.boolean_or("single_word", false));
  token.lstrip = TRY(fields.boolean_or("lstrip", false));
  token.rstrip = TRY(fields.boolean_or("rstrip", false));
  const auto id = TRY(fields.get<uint64_t>("id", "an id"));
  if (id > static_cast<uint64_t>(Vocabulary::kIdMax)) {
    return corrupt("{}: the token {} has id {}; ids go from 0 to {}", fields.place,
                   quote(token.content), id, Vocabulary::kIdMax);
  }
  if (token.content.size() > AddedToken::kBytesMax) {
    return exhausted("{}: a token of {} bytes; the limit is {}", fields.place, token.content.size(),
                     AddedToken::kBytesMax);
  }
  return token;
}

// Assigns ids as the reference does, ignoring the file's: a token of the vocabulary keeps its id,
// the others are numbered from the vocabulary's size. Empty tokens are dropped; of two tokens with
// the same content the later one wins.
Status read_added_tokens(const Section& root, TokenizerParts& parts) {
  if (!root.find("added_tokens")) return {};
  const auto list = TRY(root.get<array>("added_tokens", "an array"));
  if (list.size() > kAddedTokensMax) {
    return exhausted("{}: {} added tokens; the limit is {}", root.place, list.size(),
                     kAddedTokensMax);
  }
  auto next_id = static_cast<TokenId>(parts.vocabulary->size());
  std::unordered_map<std::string, size_t> places;
  for (const element& json : list) {
    object fields;
    if (json.get(fields) != simdjson::SUCCESS) {
      return corrupt("{}: added_tokens: an entry is not an object", root.place);
    }
    AddedToken token = TRY(read_added_token({fields, root.place + ": added_tokens"}));
    if (token.content.empty()) continue;
    if (auto found = places.find(token.content); found != places.end()) {
      token.id = parts.added[found->second].id;
      parts.added[found->second] = std::move(token);
      continue;
    }
    if (auto id = parts.vocabulary->find(token.content)) {
      token.id = *id;
    } else {
      token.id = next_id++;
      if (parts.vocabulary->contains(token.id)) {
        return corrupt("{}: added_tokens: {} would get id {}, which is {}", root.place,
                       quote(token.content), token.id, quote(parts.vocabulary->spelling(token.id)));
      }
    }
    places.emplace(token.content, parts.added.size());
    parts.added.push_back(std::move(token));
  }
  return {};
}

}  // namespace

Result<TokenizerParts> read_tokenizer_json(std::string_view text, const std::string& what) {
  if (text.size() > kTokenizerFileBytesMax) {
    return exhausted("{}: {} bytes; the limit is {}", what, text.size(), kTokenizerFileBytesMax);
  }
  simdjson::dom::parser parser;
  element document;
  const auto error = parser.parse(text.data(), text.size()).get(document);
  if (error != simdjson::SUCCESS) {
    return corrupt("{}: not valid JSON: {}", what, simdjson::error_message(error));
  }
  Section root{{}, what};
  if (document.get(root.fields) != simdjson::SUCCESS) return corrupt("{}: not an object", what);

  TokenizerParts parts;
  parts.normalizer =
      TRY(Normalizer::make(TRY(small_part(root, "normalizer")), what + ": normalizer"));
  parts.pre_tokenizer =
      TRY(PreTokenizer::make(TRY(small_part(root, "pre_tokenizer")), what + ": pre_tokenizer"));
  parts.post_processor =
      TRY(PostProcessor::make(TRY(small_part(root, "post_processor")), what + ": post_processor"));
  parts.decoder = TRY(Decoder::make(TRY(small_part(root, "decoder")), what + ": decoder"));
  TRY(read_model(root, parts));
  TRY(read_added_tokens(root, parts));
  return parts;
}

}  // namespace banyan
