// Operating errors as values: what went wrong outside the program (a bad request, a broken file, an
// exhausted resource). Our own bugs are not Errors; they fail a CHECK (base/check.h).
//
// Every message names the offending value and, where possible, what to do next.
#pragma once

#include <expected>
#include <string>

namespace banyan {

enum class ErrorCode {
  kInvalidArgument,  // the caller's value is wrong; retrying unchanged cannot help
  kNotFound,         // a requested file, tensor or name does not exist
  kUnsupported,      // well-formed, but not supported by this build or version
  kCorrupt,          // external data contradicts its own format
  kExhausted,        // a limit of EngineConfig or of the machine was reached
  kCancelled,        // by the caller
  kIo,               // the operating system reported an error
};

// The name used in logs and in `--json` errors, for example "invalid_argument".
const char* to_string(ErrorCode code);

struct Error {
  ErrorCode code = ErrorCode::kInvalidArgument;
  std::string message;
};

template <class T>
using Result = std::expected<T, Error>;
using Status = Result<void>;

}  // namespace banyan
