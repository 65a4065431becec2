// Wraps streamed text at word boundaries for a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace banyan::cli {

// The width of the terminal on stdout; 80 if unknown.
size_t stdout_columns();

// Holds back a word until it is complete. Lines of code (indented by four columns, or between ```)
// and words longer than a line are not wrapped.
class WordWrap {
 public:
  explicit WordWrap(size_t columns) : columns_(columns) {}

  // Returns the text that can be shown now.
  std::string add(std::string_view piece);
  // Returns the text held back.
  std::string finish();

 private:
  void end_word();
  bool is_code() const { return fenced_ || (line_begin_.size() >= 4 && line_begin_ == "    "); }

  size_t columns_;
  size_t column_ = 0;
  std::string word_;    // complete characters, without spaces
  std::string spaces_;  // spaces before it, not shown yet
  std::string out_;
  std::string line_begin_;  // first four bytes of the line
  bool fenced_ = false;
};

}  // namespace banyan::cli
