// Operating errors as values: what went wrong in the world outside (a bad request, a broken file,
// an exhausted resource), never a bug of our own (that is CHECK, see base/check.h).
//
// Every message names the value that was wrong and, where there is one, the next thing to do.
#pragma once

#include <expected>
#include <string>

namespace banyan {

enum class ErrorCode {
  kInvalidArgument,  // the caller's value is wrong; trying again unchanged cannot help
  kNotFound,         // a file, tensor or name that was asked for does not exist
  kUnsupported,      // well-formed, but this build or version does not do it
  kCorrupt,          // bytes that came from outside contradict their own format
  kExhausted,        // a limit of EngineConfig or of the machine is reached
  kCancelled,        // the caller asked for it to stop
  kIo,               // the operating system refused
};

// The code's name as it appears in logs and in `--json` errors, for example "invalid_argument".
const char* to_string(ErrorCode code);

struct Error {
  ErrorCode code = ErrorCode::kInvalidArgument;
  std::string message;
};

template <class T>
using Result = std::expected<T, Error>;
using Status = Result<void>;

}  // namespace banyan
