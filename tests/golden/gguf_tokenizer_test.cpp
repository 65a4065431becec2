// A tokenizer.json as llama.cpp's converter puts it into a GGUF file encodes to the same tokens.
#include <gtest/gtest.h>
#include <simdjson.h>

#include <algorithm>
#include <map>
#include <span>

#include "base/file.h"
#include "base/gguf.h"
#include "support/gguf_file.h"
#include "support/shared.h"
#include "support/value_or_abort.h"
#include "text/tokenizer/gguf_tokenizer.h"
#include "text/tokenizer/tokenizer.h"

namespace banyan::test::gguf_tokenizer_test {
namespace {

using simdjson::dom::array;
using simdjson::dom::element;

struct GgufVocabulary {
  std::map<int64_t, std::string> texts;
  std::map<int64_t, int> types;  // 1 where absent
  std::vector<std::string> merges;
};

GgufVocabulary read_vocabulary(const std::string& folder) {
  GgufVocabulary v;
  simdjson::dom::parser parser;
  element root = parser.load(folder + "/tokenizer.json").value();
  for (auto [text, id] : root["model"]["vocab"].get_object()) {
    v.texts[id.get_int64()] = std::string(text);
  }
  for (element token : root["added_tokens"].get_array()) {
    int64_t id = token["id"].get_int64();
    v.texts[id] = std::string(token["content"].get_string().value());
    v.types[id] = token["special"].get_bool() ? 3 : 4;
  }
  for (element merge : root["model"]["merges"].get_array()) {
    if (merge.is_string()) {
      v.merges.emplace_back(merge.get_string().value());
    } else {
      array pair = merge.get_array();
      v.merges.push_back(std::string(pair.at(0).get_string().value()) + " " +
                         std::string(pair.at(1).get_string().value()));
    }
  }
  return v;
}

void write_list(GgufBytes& file, std::string_view key, uint32_t type, size_t count) {
  file.text(key).number<uint32_t>(9).number(type).number<uint64_t>(count);
}

constexpr std::string_view kGemma4 = "gemma4";

// `pre` is empty for a tokenizer by scores, which are then as merges order the pieces, and kGemma4
// for one of pieces by merges. Its file denies that bos is added, as early ones do.
std::string metadata_of(const GgufVocabulary& v, const std::string& pre, int64_t bos) {
  bool gemma4 = pre == kGemma4, pieces = pre.empty() || gemma4;
  auto count = static_cast<size_t>(v.texts.rbegin()->first + 1);
  std::vector<std::string> texts(count);
  std::vector<int32_t> types(count, 5);
  for (size_t id = 0; id < count; ++id) texts[id] = "[PAD" + std::to_string(id) + "]";
  std::map<std::string, size_t> ids;
  for (const auto& [id, text] : v.texts) {
    auto at = static_cast<size_t>(id);
    texts[at] = text;
    types[at] = v.types.contains(id) ? v.types.at(id) : 1;
    if (pieces && text.starts_with("<0x") && text.size() == 6) types[at] = 6;
    if (pre.empty() && text == "<unk>") types[at] = 2;
    if (pre.empty()) ids[text] = at;
  }
  GgufBytes file;
  file.begin(0, gemma4 ? 7 : 6);
  file.pair("tokenizer.ggml.model", pre.empty() ? "llama" : gemma4 ? kGemma4 : "gpt2");
  file.pair("tokenizer.ggml.bos_token_id", Json(bos));
  if (gemma4) file.pair("tokenizer.ggml.add_bos_token", Json(false));
  file.pair("tokenizer.ggml.pre", pre.empty() ? "default" : pre.c_str());
  write_list(file, "tokenizer.ggml.tokens", 8, count);
  for (const std::string& text : texts) file.text(text);
  write_list(file, "tokenizer.ggml.token_type", 5, count);
  for (int32_t type : types) file.number(type);
  if (pre.empty()) {
    std::vector<float> scores(count, -1e9F);
    for (size_t rank = v.merges.size(); rank-- > 0;) {
      std::string piece = v.merges[rank];
      piece.erase(piece.find(' '), 1);
      scores[ids.at(piece)] = -static_cast<float>(rank);
    }
    write_list(file, "tokenizer.ggml.scores", 6, count);
    for (float score : scores) file.number(score);
  } else {
    write_list(file, "tokenizer.ggml.merges", 8, v.merges.size());
    for (const std::string& merge : v.merges) file.text(merge);
  }
  return file.bytes();
}

std::unique_ptr<Tokenizer> gguf_tokenizer(const std::string& bytes) {
  auto pairs = value_or_abort(GgufPairs::parse(std::as_bytes(std::span(bytes)), "f"));
  return value_or_abort(Tokenizer::make(value_or_abort(read_gguf_tokenizer(pairs)),
                                        value_or_abort(read_gguf_tokenizer_config(pairs))));
}

std::vector<std::string> samples() {
  std::vector<std::string> texts = {"",
                                    " ",
                                    "Hello, world! It's 12345 o'clock.",
                                    "  leading   and   runs of spaces  \n\n\tand\ttabs ",
                                    "Ünïcödé, 日本語のテキスト, 한국어, кириллица, العربية, हिन्दी",
                                    "emoji 🦙🚀👩‍👩‍👧 and \u200b zero width",
                                    "int main() { return 0x1F + 3.14e-10; }  // comment\r\n",
                                    "AAAAAAAAAAAAAAAAAAAA aaaaaaaaaaaaaaa              bbbb",
                                    "<s>text</s> <|im_start|>user\n<|eot_id|>"};
  texts.push_back(value_or_abort(read_file(source_path("docs/EXTENDING.md"))).substr(0, 20000));
  return texts;
}

struct GgufTokenizerCase {
  const char* folder;
  const char* pre;
  bool bos;
};

class GgufTokenizers : public testing::TestWithParam<GgufTokenizerCase> {};

TEST_P(GgufTokenizers, EncodeAsHuggingFaceDoes) {
  std::string folder = nano_model();
  if (std::string_view(GetParam().folder) != "nano") {
    REQUIRE_SHARED(GetParam().folder);
    folder = shared_path(GetParam().folder);
  }
  std::unique_ptr<Tokenizer> theirs = value_or_abort(Tokenizer::load(folder));
  std::vector<TokenId> around = value_or_abort(theirs->encode(""));
  int64_t bos = around.empty() ? -1 : around[0];
  std::string bytes = metadata_of(read_vocabulary(folder), GetParam().pre, bos);
  std::unique_ptr<Tokenizer> ours = gguf_tokenizer(bytes);
  for (const std::string& text : samples()) {
    EncodeOptions options{.add_special_tokens = GetParam().bos};
    std::vector<TokenId> ids = value_or_abort(ours->encode(text, options));
    EXPECT_EQ(ids, value_or_abort(theirs->encode(text, options))) << text.substr(0, 80);
    EXPECT_EQ(value_or_abort(ours->decode(ids, true)), value_or_abort(theirs->decode(ids, true)));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Vocabularies, GgufTokenizers,
    testing::Values(GgufTokenizerCase{"nano", "hunyuan", false},
                    GgufTokenizerCase{"models/stories260K", "", true},
                    GgufTokenizerCase{"tokenizers/llama2", "", true},
                    GgufTokenizerCase{"tokenizers/llama3_1", "llama-bpe", true},
                    GgufTokenizerCase{"tokenizers/qwen3", "qwen2", false},
                    GgufTokenizerCase{"tokenizers/gptoss", "gpt-4o", false},
                    GgufTokenizerCase{"tokenizers/deepseek_v3", "deepseek-v3", false}),
    [](const auto& test) {
      std::string name = test.param.folder;
      std::ranges::replace_if(name, [](char c) { return !isalnum(c); }, '_');
      return name;
    });

TEST(GgufTokenizer, OfKimiJoinsAsTiktokenDoes) {
  auto theirs =
      value_or_abort(Tokenizer::load(source_path("tests/golden/tokenizer/tiny_tiktoken")));
  GgufBytes file;
  file.begin(0, 4).pair("tokenizer.ggml.model", "gpt2").pair("tokenizer.ggml.pre", "kimi-k2");
  auto count = static_cast<size_t>(theirs->vocab_size());
  write_list(file, "tokenizer.ggml.tokens", 8, count);
  for (TokenId id = 0; id < theirs->vocab_size(); ++id) file.text(theirs->token(id));
  write_list(file, "tokenizer.ggml.token_type", 5, count);
  for (TokenId id = 0; id < theirs->vocab_size(); ++id) {
    file.number<int32_t>(theirs->is_special(id) ? 3 : 1);
  }
  std::unique_ptr<Tokenizer> ours = gguf_tokenizer(file.bytes());
  for (const std::string& text : samples()) {
    std::vector<TokenId> ids = value_or_abort(ours->encode(text));
    EXPECT_EQ(ids, value_or_abort(theirs->encode(text))) << text.substr(0, 80);
    EXPECT_EQ(value_or_abort(ours->decode(ids)), value_or_abort(theirs->decode(ids)));
  }
}

// Its tokenizer.json is of SentencePiece's kind, without a space before the text.
TEST(GgufTokenizer, OfGemma4JoinsPiecesByMerges) {
  std::string source = source_path("tests/golden/tokenizer/tiny_metaspace/tokenizer.json");
  Json json = Json::parse(value_or_abort(read_file(source)));
  json["pre_tokenizer"] = nullptr;
  json["normalizer"] = {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "\u2581"}};
  json["decoder"]["decoders"].erase(3);  // which strips that space
  Json channel = json["added_tokens"][0];
  channel.update({{"id", 800}, {"content", "<|channel>"}});
  json["added_tokens"].push_back(channel);
  TemporaryFolder folder;
  folder.write("tokenizer.json", json.dump());
  std::unique_ptr<Tokenizer> theirs = value_or_abort(Tokenizer::load(folder.path()));

  GgufVocabulary vocabulary = read_vocabulary(folder.path());
  constexpr int kUserDefined = 4;
  vocabulary.types[800] = kUserDefined;
  std::unique_ptr<Tokenizer> ours =
      gguf_tokenizer(metadata_of(vocabulary, std::string(kGemma4), 1));
  std::vector<std::string> texts = samples();
  texts.push_back("<|channel>thought\n\n\n  x");
  for (const std::string& text : texts) {
    for (bool special : {false, true}) {
      EncodeOptions options{.add_special_tokens = special, .parse_special = special};
      std::vector<TokenId> ids = value_or_abort(ours->encode(text, options));
      EXPECT_EQ(ids, value_or_abort(theirs->encode(text, options))) << text.substr(0, 80);
      EXPECT_EQ(value_or_abort(ours->decode(ids, special)),
                value_or_abort(theirs->decode(ids, special)));
    }
  }
  EXPECT_TRUE(ours->is_special(800));
}

// Of a message in harmony <|end|> is the end, of a turn <|return|>.
TEST(GgufTokenizer, KnowsWhatEndsAGeneration) {
  auto ends_of = [](const Json& tokens, int eos) {
    GgufBytes file;
    file.begin(0, 5).pair("tokenizer.ggml.model", "gpt2").pair("tokenizer.ggml.tokens", tokens);
    Json types = Json::array();
    for (size_t i = 0; i < tokens.size(); ++i) types.push_back(i == 0 ? 1 : 3);
    file.pair("tokenizer.ggml.token_type", types).pair("tokenizer.ggml.eos_token_id", Json(eos));
    file.pair("tokenizer.chat_template", "{{ messages }}");
    auto pairs = value_or_abort(GgufPairs::parse(std::as_bytes(std::span(file.bytes())), "f"));
    TokenizerConfig config = value_or_abort(read_gguf_tokenizer_config(pairs));
    EXPECT_EQ(config.chat_template, "{{ messages }}");
    return config.special.eos_ids;
  };
  EXPECT_EQ(ends_of({"a", "<|eot_id|>", "<|end|>", "<x>"}, 3), (std::vector<TokenId>{3, 1, 2}));
  EXPECT_EQ(ends_of({"a", "<|end|>", "<|return|>"}, 2), (std::vector<TokenId>{2}));
  EXPECT_EQ(ends_of({"a", "<eos>", "<turn|>", "<|turn>"}, 1), (std::vector<TokenId>{1, 2}));
}

TEST(GgufTokenizer, RefusesByName) {
  auto error_of = [](const GgufBytes& file) {
    auto pairs = value_or_abort(GgufPairs::parse(std::as_bytes(std::span(file.bytes())), "f"));
    auto parts = read_gguf_tokenizer(pairs);
    return parts ? std::string() : parts.error().message;
  };
  auto begin = [](uint64_t pairs, const char* model) {
    GgufBytes file;
    file.begin(0, pairs).pair("tokenizer.ggml.model", model);
    return file;
  };
  EXPECT_NE(error_of(begin(1, "t5")).find("\"t5\" is not supported; supported: gpt2"),
            std::string::npos);
  EXPECT_NE(error_of(begin(1, "gpt2")).find("tokenizer.ggml.tokens is empty"), std::string::npos);
  GgufBytes pre = begin(3, "gpt2").pair("tokenizer.ggml.tokens", Json({"a"}));
  pre.pair("tokenizer.ggml.pre", "kana");
  EXPECT_NE(
      error_of(pre).find("tokenizer.ggml.pre \"kana\" is not supported; supported: llama-bpe"),
      std::string::npos)
      << error_of(pre);
  GgufBytes none = begin(3, "gpt2").pair("tokenizer.ggml.tokens", Json({"a"}));
  none.pair("tokenizer.ggml.pre", "gpt-2");
  EXPECT_NE(error_of(none).find("tokenizer.ggml.merges is missing"), std::string::npos);
  GgufBytes merges = begin(4, "gpt2").pair("tokenizer.ggml.tokens", Json({"a"}));
  merges.pair("tokenizer.ggml.pre", "gpt-2").pair("tokenizer.ggml.merges", Json({"a b"}));
  EXPECT_NE(error_of(merges).find(
                "entry 0, \"a b\", uses or produces a token that is not in the vocabulary"),
            std::string::npos)
      << error_of(merges);
  GgufBytes scores = begin(3, "llama").pair("tokenizer.ggml.tokens", Json({"a", "b"}));
  scores.pair("tokenizer.ggml.scores", Json({1.0}));
  EXPECT_NE(error_of(scores).find("scores has 1 entries for 2 tokens"), std::string::npos);
}

}  // namespace
}  // namespace banyan::test::gguf_tokenizer_test
