// CHECK asserts an invariant of our own code. It is always on: prints the location and the values,
// then aborts. Input from outside the program is never CHECKed; it yields a Result
// (banyan/status.h).
#pragma once

#include <fmt/format.h>

#include <string>

namespace banyan {

[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               const std::string& message);

}  // namespace banyan

// The message must be a literal, since it is concatenated with an empty one.
#define CHECK(condition, ...)                                                                \
  do {                                                                                       \
    if (!(condition)) [[unlikely]] {                                                         \
      ::banyan::check_failed(__FILE__, __LINE__, #condition, ::fmt::format("" __VA_ARGS__)); \
    }                                                                                        \
  } while (false)
