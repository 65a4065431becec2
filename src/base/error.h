// Constructors of Error values, and TRY, which returns an error early.
//
//   Result<Config> read(const std::string& path) {
//     std::string text = TRY(read_file(path));        // returns the Error to our caller
//     if (text.empty()) return corrupt("{}: the file is empty", path);
//     ...
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <exception>
#include <string>
#include <utility>

#include "banyan/status.h"

namespace banyan {

// `message` may quote untrusted bytes: control characters are escaped and anything past
// kErrorBytesMax is cut, so it cannot control a terminal or fill a log.
constexpr size_t kErrorBytesMax = 4096;
std::unexpected<Error> make_error(ErrorCode code, std::string message);

// Returns the result of `body`, or kExhausted if it throws: the standard library throws when memory
// or threads run out, and no exception may cross a public header.
template <class Body>
auto guard(Body body) -> decltype(body()) {
  try {
    return body();
  } catch (const std::exception& e) {
    return make_error(ErrorCode::kExhausted, fmt::format("out of memory or threads: {}", e.what()));
  }
}

#define BANYAN_ERROR_MAKER(name, code)                                                            \
  template <class... Args>                                                                        \
  [[nodiscard]] std::unexpected<Error> name(fmt::format_string<Args...> format, Args&&... args) { \
    return make_error(code, fmt::format(format, std::forward<Args>(args)...));                    \
  }

BANYAN_ERROR_MAKER(invalid_argument, ErrorCode::kInvalidArgument)
BANYAN_ERROR_MAKER(not_found, ErrorCode::kNotFound)
BANYAN_ERROR_MAKER(unsupported, ErrorCode::kUnsupported)
BANYAN_ERROR_MAKER(corrupt, ErrorCode::kCorrupt)
BANYAN_ERROR_MAKER(exhausted, ErrorCode::kExhausted)
BANYAN_ERROR_MAKER(io_error, ErrorCode::kIo)
#undef BANYAN_ERROR_MAKER

}  // namespace banyan

// Evaluates a Result: yields its value, or returns its Error from the enclosing function.
#define TRY(expression)                                                     \
  ({                                                                        \
    auto&& try_result = (expression);                                       \
    if (!try_result) return std::unexpected(std::move(try_result).error()); \
    *std::move(try_result);                                                 \
  })
