// Any pattern over any text: refused, or spans that cover the text without gaps.
//
// The input is the pattern, a zero byte, and the text.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "text/tokenizer/pattern.h"
#include "unicode/unicode.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t zero = input.find('\0');
  if (zero == input.npos || banyan::unicode::first_invalid(input)) return 0;
  const auto pattern = banyan::Pattern::compile(input.substr(0, zero));
  if (!pattern) return 0;
  const std::string_view text = input.substr(zero + 1);
  banyan::PatternScratch scratch;
  std::vector<banyan::TextSpan> spans;
  if (!pattern->split(text, scratch, spans)) return 0;
  size_t end = 0;
  for (const banyan::TextSpan& span : spans) {
    CHECK(span.begin == end && span.begin <= span.end, "{} to {}", span.begin, span.end);
    CHECK(!banyan::unicode::first_invalid(text.substr(span.begin, span.end - span.begin)));
    end = span.end;
  }
  CHECK(end == text.size());
  return 0;
}
