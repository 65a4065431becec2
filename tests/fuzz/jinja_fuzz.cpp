// Any bytes as a chat template, rendered over a conversation: it ends in valid UTF-8 or an error,
// within its limits, and twice the same.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "text/chat_template.h"
#include "unicode/unicode.h"

namespace {

const banyan::Json& variables() {
  static const banyan::Json json = banyan::Json::parse(R"({
    "s": "Hello, Wörld 🙂", "n": 42, "f": 2.5, "yes": true, "nothing": null, "l": [3, 1, 2],
    "d": {"b": 1, "a": [1, {"x": "y"}], "items": "z"}, "add_generation_prompt": true,
    "messages": [{"role": "system", "content": "sys"}, {"role": "user", "content": "hi <b>"},
                 {"role": "assistant", "content": null, "tool_calls": [
                   {"type": "function", "function": {"name": "f", "arguments": {"x": 1.5}}}]}],
    "tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}]})");
  return json;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // Small limits: an input that runs into them says no more for running longer.
  banyan::TemplateLimits limits{.source_bytes_max = 64 << 10,
                                .output_bytes_max = 1 << 20,
                                .memory_bytes_max = 64 << 20,
                                .fuel_max = 50'000};
  auto parsed = banyan::ChatTemplate::parse({reinterpret_cast<const char*>(data), size}, limits);
  if (!parsed) return 0;
  banyan::RenderOptions options{.clock = [] { return std::time_t{0}; }};
  auto text = parsed->render(variables(), options);
  auto again = parsed->render(variables(), options);
  CHECK(text.has_value() == again.has_value());
  if (!text) return 0;
  CHECK(*text == *again);
  CHECK(text->size() <= limits.output_bytes_max);
  CHECK(!banyan::unicode::first_invalid(*text));
  return 0;
}
