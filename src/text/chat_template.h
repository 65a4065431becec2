// A checkpoint's chat template: Jinja as Hugging Face transformers runs it (an immutable sandbox,
// trim_blocks, lstrip_blocks, break and continue, {% generation %}, its own tojson, strftime_now
// and raise_exception), in a sandbox of our own.
//
// A template is untrusted code. It can reach nothing but its variables; it cannot change them; and
// steps, memory, output, nesting and recursion are limited, so whatever it does ends soon in text
// or in an Error. The budget grows with the variables, so that long conversations still render.
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
  size_t memory_bytes_max = 512 << 20;  // values made while rendering
  // Evaluation steps: a step is some 50 ns, and so are 64 bytes of text that are copied or
  // searched.
  int64_t fuel_max = 600'000;
  int64_t fuel_per_variable = 500;  // more for every value in the variables
  int64_t fuel_per_byte = 32;       // more for every byte of their text: a loop over its characters
  int nesting_max = 200;            // tags and brackets in the source, operators in an expression
  int depth_max = 600;              // evaluation: nesting and macro calls together
};

struct RenderOptions {
  // The time for strftime_now, in the process's local zone; the system clock when empty.
  std::function<std::time_t()> clock;
};

class ChatTemplate {
 public:
  // Errors name the line and what stands there: kInvalidArgument for bad syntax and unknown
  // filters, kUnsupported for tags that need other templates, kExhausted for a limit.
  static Result<ChatTemplate> parse(std::string_view source, TemplateLimits limits = {});

  // `variables` is an object: messages, tools, documents, add_generation_prompt, bos_token,
  // eos_token and whatever else the template reads. What raise_exception() says comes back as
  // kInvalidArgument with exactly that message; other errors name the template's line.
  Result<std::string> render(const Json& variables, const RenderOptions& options = {}) const;

 private:
  ChatTemplate() = default;

  std::shared_ptr<const jinja::Ast> ast_;
  TemplateLimits limits_;
};

}  // namespace banyan
