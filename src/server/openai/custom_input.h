// Decodes the input of a custom tool call from the arguments that the model writes. To the model
// such a tool is a function with one string, {"input": "..."} (server/openai/custom_tools.h).
//
// One per call; belongs to one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace banyan {

class CustomInput {
 public:
  // Returns the input text that the next piece of the arguments adds.
  std::string take(std::string_view arguments);
  // Returns what remains at the end of the arguments. Arguments of any other form, which only an
  // unconstrained model writes, are taken as the input verbatim.
  std::string finish();

 private:
  enum class State : uint8_t { kBegin, kString, kOther, kEnded };

  void begin();
  void read_string(std::string& out);
  bool read_escape(size_t& at, std::string& out);

  State state_ = State::kBegin;
  std::string pending_;  // arguments not decoded yet
};

// Decodes complete arguments.
std::string custom_input(std::string_view arguments);
// Encodes an input as arguments, as JSON text.
std::string custom_arguments(const std::string& input);

}  // namespace banyan
