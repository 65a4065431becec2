// Any bytes as a tiktoken.model: refused, or a tokenizer that encodes and gives the text back.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "text/tokenizer/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const banyan::Json config = {{"tokenizer_class", "TikTokenTokenizer"}};
  auto parts = banyan::read_tiktoken(text, "tiktoken.model", config, "tokenizer_config.json");
  if (!parts) return 0;
  auto tokenizer = banyan::Tokenizer::make(std::move(*parts), {});
  CHECK(tokenizer, "{}", tokenizer.error().message);
  for (std::string_view sample : {"Hello, world! 1234\n", "\u4f60\u597d\u4e16\u754cEnglish", ""}) {
    auto ids = (*tokenizer)->encode(sample);
    CHECK(ids && *(*tokenizer)->decode(*ids) == sample);
  }
  return 0;
}
