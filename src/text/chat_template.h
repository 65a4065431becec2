// A checkpoint's chat template: Jinja as Hugging Face transformers runs it (immutable sandbox,
// trim_blocks, lstrip_blocks, break and continue, {% generation %}, its own tojson, strftime_now
// and raise_exception).
//
// A template is untrusted code and runs in our own sandbox. It can read only its variables and
// cannot change them. Steps, memory, output, nesting and recursion are limited, so rendering always
// ends in text or an Error. The step budget grows with the variables, so long conversations still
// render.
//
// Immutable after parse(); const calls are safe from many threads at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "banyan/status.h"
#include "base/json.h"

namespace banyan {

namespace jinja {
struct Ast;
}

struct TemplateLimits {
  size_t source_bytes_max = 256 << 10;
  size_t output_bytes_max = 64 << 20;
  size_t memory_bytes_max = 512 << 20;  // values created while rendering
  // Evaluation steps. A step takes about 50 ns, as does copying or searching 64 bytes of text.
  int64_t fuel_max = 600'000;
  int64_t fuel_per_variable = 500;  // added per value in the variables
  int64_t fuel_per_byte = 32;       // added per byte of their text, for loops over characters
  int nesting_max = 200;            // nested tags, brackets, operators in an expression
  int depth_max = 600;              // evaluation depth: nesting plus macro calls
};

struct RenderOptions {
  // The time for strftime_now, in the local time zone of the process. Empty: the system clock.
  std::function<std::time_t()> clock;
};

class ChatTemplate {
 public:
  // Errors name the line and the offending text: kInvalidArgument for syntax errors and unknown
  // filters, kUnsupported for tags that load other templates, kExhausted for limits.
  static Result<ChatTemplate> parse(std::string_view source, TemplateLimits limits = {});

  // `variables` is an object: messages, tools, documents, add_generation_prompt, bos_token,
  // eos_token and anything else that the template reads. raise_exception(message) returns
  // kInvalidArgument with exactly that message; other errors name the template's line.
  Result<std::string> render(const Json& variables, const RenderOptions& options = {}) const;

 private:
  ChatTemplate() = default;

  std::shared_ptr<const jinja::Ast> ast_;
  TemplateLimits limits_;
};

}  // namespace banyan
