// Any bytes as a tokenizer.json: refused, or a tokenizer whose ids lie in its vocabulary and whose
// stream decoder agrees with its decoder.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "text/stream_decoder.h"

namespace {

constexpr std::string_view kTexts[] = {
    "",
    " ",
    "Hello, world! I'm 1234.",
    "  two\n\n lines\r\n",
    "caf\u00e9 cafe\u0301 \u4f60\u597d",
    "<s>a</s> <|x|>b",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "\U0001f600\u200d\u2581\u0120\x01"};

void use(const banyan::Tokenizer& tokenizer, std::string_view text) {
  for (bool special : {true, false}) {
    auto ids = tokenizer.encode(text, {.add_special_tokens = special, .parse_special = special});
    if (!ids) continue;
    banyan::StreamDecoder stream(tokenizer, special);
    std::string streamed;
    for (banyan::TokenId id : *ids) {
      CHECK(id >= 0 && id <= banyan::Vocabulary::kIdMax, "id {}", id);
      (void)tokenizer.token_bytes(id);
      streamed += stream.push(id).text;
    }
    streamed += stream.finish().text;
    auto decoded = tokenizer.decode(*ids, special);
    // Invalid bytes may have been emitted in part: ByteRuns::kByCharacters.
    if (!decoded || decoded->find("\uFFFD") != decoded->npos) continue;
    CHECK(*decoded == streamed, "\"{}\" and \"{}\"", *decoded, streamed);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto parts = banyan::read_tokenizer_json(text, "tokenizer.json");
  if (!parts) return 0;
  auto tokenizer = banyan::Tokenizer::make(std::move(*parts), {});
  if (!tokenizer) return 0;
  for (std::string_view sample : kTexts) use(**tokenizer, sample);
  return 0;
}
