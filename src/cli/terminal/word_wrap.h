// Breaks text that comes in pieces between words, for a terminal of some columns.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace banyan::cli {

// Of the terminal that stdout is; 80 where it does not say.
size_t stdout_columns();

// Holds back a word until it is complete. Lines of code (indented by four columns, or between ```)
// and words longer than a line are left as they are.
class WordWrap {
 public:
  explicit WordWrap(size_t columns) : columns_(columns) {}

  // What can be shown now.
  std::string add(std::string_view piece);
  // What was held back.
  std::string finish();

 private:
  void end_word();
  bool is_code() const { return fenced_ || (line_begin_.size() >= 4 && line_begin_ == "    "); }

  size_t columns_;
  size_t column_ = 0;
  std::string word_;    // complete characters, without spaces
  std::string spaces_;  // before it, not shown yet
  std::string out_;
  std::string line_begin_;  // its first four bytes
  bool fenced_ = false;
};

}  // namespace banyan::cli
