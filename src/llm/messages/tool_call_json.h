// The JSON of tool calls in streamed text: where a value ends, and how a call's envelope begins.
// One per call; belongs to one thread.
#pragma once

#include <string>
#include <string_view>

namespace banyan {

// Finds the end of one JSON value in streamed text.
class JsonExtent {
 public:
  // Returns how many bytes of `text` belong to the value; done() once it has ended.
  size_t take(std::string_view text);
  bool done() const { return done_; }

 private:
  int depth_ = 0;
  bool in_string_ = false, escaped_ = false, begun_ = false, done_ = false, scalar_ = false;
};

// {"name": NAME, "arguments": ...: what has been parsed so far.
struct CallEnvelope {
  enum class State { kMore, kWrong, kArguments, kEnded } state = State::kMore;
  std::string name;
  size_t at = 0;          // kArguments: their offset; kEnded: after the closing brace
  std::string arguments;  // kEnded, or kArguments if they precede the name
};
CallEnvelope read_call_envelope(std::string_view text);

}  // namespace banyan
