// Banyan's tokenizer against what the `tokenizers` and `tiktoken` packages gave for the same texts
// (tools/make_tokenizer_goldens.py). The texts are generated here as they were there.
#include "text/tokenizer/tokenizer.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "support/shared.h"
#include "text/json_fields.h"
#include "unicode/unicode.h"

namespace banyan::tokenizer_test {
namespace {

constexpr JsonLimits kLimits{.bytes_max = 64 << 20, .keys_per_object_max = 1 << 20};

Json read_golden(const std::string& name) {
  const std::string path = test::source_path("tests/golden/tokenizer/" + name);
  return parse_json(read_file(path).value(), path, kLimits).value();
}

// splitmix64, as in tools/make_tokenizer_goldens.py.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t below(uint64_t bound) {
    uint64_t z = state_ += 0x9E3779B97F4A7C15;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    return (z ^ z >> 31) % bound;
  }

 private:
  uint64_t state_;
};

std::vector<std::string> make_texts(size_t count) {
  const auto snippets = read_golden("snippets.json").get<std::vector<std::string>>();
  Random random(1);
  std::vector<std::string> texts(count);
  for (std::string& text : texts) {
    const uint64_t parts = 1 + random.below(16);
    for (uint64_t part = 0; part < parts; ++part) {
      if (random.below(16) == 0) {
        const auto code = static_cast<char32_t>(random.below(0x110000));
        unicode::append(text, code >= 0xD800 && code < 0xE000 ? U'\uFFFD' : code);
        continue;
      }
      const std::string& snippet = snippets[random.below(snippets.size())];
      const uint64_t times = 1 + random.below(8) / 7;
      for (uint64_t i = 0; i < times; ++i) text += snippet;
    }
  }
  return texts;
}

uint64_t hash_ids(uint64_t hash, const std::vector<TokenId>& ids) {
  constexpr uint64_t kPrime = 0x100000001B3;
  for (TokenId id : ids) hash = (hash ^ static_cast<uint64_t>(id)) * kPrime;
  return (hash ^ UINT64_MAX) * kPrime;
}

struct Case {
  std::string name;
  bool shared;
};

std::ostream& operator<<(std::ostream& out, const Case& vocabulary) {
  return out << vocabulary.name;
}

class TokenizerGolden : public testing::TestWithParam<Case> {};

TEST_P(TokenizerGolden, EncodesAndDecodesAsTheReference) {
  const auto& [name, shared] = GetParam();
  if (shared) REQUIRE_SHARED("tokenizers/" + name);
  auto loaded = Tokenizer::load(shared ? test::shared_path("tokenizers/" + name)
                                       : test::source_path("tests/golden/tokenizer/" + name));
  ASSERT_TRUE(loaded) << loaded.error().message;
  const Tokenizer& tokenizer = **loaded;
  const Json golden = read_golden("vocabularies.json");
  const Json& expected = golden["vocabularies"][name];
  const std::vector<std::string> texts = make_texts(golden["hashed"].get<size_t>());

  const size_t listed = expected["ids"].size();
  for (size_t i = 0; i < listed; ++i) {
    const auto ids = expected["ids"][i].get<std::vector<TokenId>>();
    EXPECT_EQ(tokenizer.encode(texts[i]).value(), ids) << texts[i];
    const Json& plain = expected["plain"][i];
    EXPECT_EQ(
        tokenizer.encode(texts[i], {.add_special_tokens = false, .parse_special = false}).value(),
        plain.is_null() ? ids : plain.get<std::vector<TokenId>>())
        << texts[i];
    const Json& decoded = expected["decoded"][i];
    EXPECT_EQ(tokenizer.decode(ids, true).value(),
              decoded.is_null() ? texts[i] : decoded.get<std::string>());
  }
  uint64_t hash = 0xCBF29CE484222325, plain_hash = hash;
  for (const std::string& text : texts) {
    hash = hash_ids(hash, tokenizer.encode(text).value());
    plain_hash = hash_ids(
        plain_hash,
        tokenizer.encode(text, {.add_special_tokens = false, .parse_special = false}).value());
  }
  EXPECT_EQ(fmt::format("{:016x}", hash), expected["hash"].get<std::string>());
  EXPECT_EQ(fmt::format("{:016x}", plain_hash), expected["plain_hash"].get<std::string>());
}

INSTANTIATE_TEST_SUITE_P(Vocabularies, TokenizerGolden,
                         testing::Values(Case{"tiny_byte_level", false},
                                         Case{"tiny_metaspace", false}, Case{"tiny_prepend", false},
                                         Case{"tiny_tiktoken", false}, Case{"llama2", true},
                                         Case{"llama3_1", true}, Case{"qwen3", true},
                                         Case{"deepseek_v3", true}, Case{"gptoss", true}),
                         [](const auto& info) { return info.param.name; });

TEST(TokenizerComponents, DoAsTheReference) {
  const Json golden = read_golden("components.json");
  const auto samples = golden["samples"].get<std::vector<std::string>>();
  for (const Json& component : golden["components"]) {
    const std::string config = component["config"].dump();
    const Json& results = component["results"];
    if (component["kind"] == "normalizer") {
      const auto normalizer = Normalizer::make(component["config"], "normalizer");
      ASSERT_TRUE(normalizer) << config << normalizer.error().message;
      for (size_t i = 0; i < results.size(); ++i) {
        NormalizedText text{samples[i], true};
        ASSERT_TRUE(normalizer->run(text));
        EXPECT_EQ(text.text, results[i].is_null() ? samples[i] : results[i].get<std::string>())
            << config << " of " << samples[i];
      }
      continue;
    }
    if (component["kind"] == "decoder") {
      const auto decoder = Decoder::make(component["config"], "decoder");
      ASSERT_TRUE(decoder) << config << decoder.error().message;
      for (size_t i = 0; i < results.size(); ++i) {
        DecoderState state(*decoder);
        std::string text;
        for (const Json& token : golden["tokens"][i]) {
          ASSERT_TRUE(state.push(token.get<std::string>(), text));
        }
        ASSERT_TRUE(state.finish(text));
        EXPECT_EQ(text, results[i].get<std::string>()) << config << " of " << golden["tokens"][i];
      }
      continue;
    }
    const auto pre_tokenizer = PreTokenizer::make(component["config"], "pre_tokenizer");
    ASSERT_TRUE(pre_tokenizer) << config << pre_tokenizer.error().message;
    for (size_t i = 0; i < results.size(); ++i) {
      PieceScratch scratch;
      ASSERT_TRUE(pre_tokenizer->run(samples[i], true, false, scratch));
      std::vector<std::string> pieces;
      for (const Piece& piece : scratch.pieces) pieces.emplace_back(piece.text);
      EXPECT_EQ(pieces, results[i].get<std::vector<std::string>>())
          << config << " of " << samples[i];
    }
  }
}

// The vectors of llama.cpp: texts parted by a line, and a line of ids for each, without bos.
class LlamaCppVectors : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(LlamaCppVectors, Encode) {
  const auto [name, vocabulary] = GetParam();
  const std::string stem = std::string("tokenizers/vectors/ggml-vocab-") + name + ".gguf";
  REQUIRE_SHARED(stem + ".inp");
  REQUIRE_SHARED(std::string("tokenizers/") + vocabulary);
  auto tokenizer = Tokenizer::load(test::shared_path(std::string("tokenizers/") + vocabulary));
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  const std::string inputs = read_file(test::shared_path(stem + ".inp")).value();
  std::istringstream outputs(read_file(test::shared_path(stem + ".out")).value());
  constexpr std::string_view kSeparator = "\n__ggml_vocab_test__\n";
  size_t at = 0;
  int count = 0;
  while (at <= inputs.size()) {
    const size_t end = std::min(inputs.find(kSeparator, at), inputs.size());
    const std::string text = inputs.substr(at, end - at);
    at = end + kSeparator.size();
    std::string line;
    if (!std::getline(outputs, line)) break;
    std::istringstream numbers(line);
    std::vector<TokenId> expected;
    for (TokenId id; numbers >> id;) expected.push_back(id);
    EXPECT_EQ((*tokenizer)->encode(text, {.add_special_tokens = false}).value(), expected)
        << "\"" << text << "\"";
    ++count;
  }
  EXPECT_GT(count, 40);
}

INSTANTIATE_TEST_SUITE_P(Vocabularies, LlamaCppVectors,
                         testing::Values(std::pair{"llama-bpe", "llama3_1"},
                                         std::pair{"llama-spm", "llama2"},
                                         std::pair{"qwen2", "qwen3"}));

}  // namespace
}  // namespace banyan::tokenizer_test
