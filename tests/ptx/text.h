// Reading PTX text: comments, words, statements and lists.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace banyan::ptx {

// What is wrong with PTX or with what a kernel does.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

template <class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(fmt::format(format, std::forward<Args>(args)...));
}

// A piece of a function's body, without its semicolon.
struct Statement {
  enum Kind { kInstruction, kDirective, kLabel, kOpen, kClose };
  Kind kind;
  std::string_view text;
  int line;  // of the module, from 1
};

// Replaces comments and lines of debug information by spaces, so that lines keep their numbers.
void blank_comments(std::string& text);

// `line` is that of the body's first character.
std::vector<Statement> statements(std::string_view body, int line);

std::string_view trim(std::string_view text);

// The parts between separators outside of braces and brackets, trimmed; none of an empty text.
std::vector<std::string_view> split(std::string_view text, char separator);

// Words between white space.
std::vector<std::string_view> words(std::string_view text);

// A decimal or 0x number with an optional sign. Errors name `text`.
int64_t parse_integer(std::string_view text);

}  // namespace banyan::ptx
