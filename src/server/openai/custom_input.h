// The input of a call of a custom tool, out of the arguments that a model writes: to the model such
// a tool is a function with one string, {"input": "..."} (server/openai/custom_tools.h).
//
// One per call; belongs to one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace banyan {

class CustomInput {
 public:
  // What the next piece of the arguments adds to the input.
  std::string take(std::string_view arguments);
  // What their end adds to it. Arguments of another form, which only a model that is not forced
  // writes, are the input as they stand.
  std::string finish();

 private:
  enum class State : uint8_t { kBegin, kString, kOther, kEnded };

  void begin();
  void read_string(std::string& out);
  bool read_escape(size_t& at, std::string& out);

  State state_ = State::kBegin;
  std::string pending_;  // of the arguments: what is not decoded yet
};

// The whole input of whole arguments.
std::string custom_input(std::string_view arguments);
// The arguments of such a call, as JSON text.
std::string custom_arguments(const std::string& input);

}  // namespace banyan
