// CHECK: an invariant of our own code. Always on; prints the place and the values, then aborts.
// What comes from outside the program is never CHECKed: it becomes a Result (banyan/status.h).
#pragma once

#include <fmt/format.h>

#include <string>

namespace banyan {

[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               const std::string& message);

}  // namespace banyan

// The message is a literal: it is glued to the empty one that stands in for it.
#define CHECK(condition, ...)                                                                \
  do {                                                                                       \
    if (!(condition)) [[unlikely]] {                                                         \
      ::banyan::check_failed(__FILE__, __LINE__, #condition, ::fmt::format("" __VA_ARGS__)); \
    }                                                                                        \
  } while (false)
