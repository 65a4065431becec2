#include "cli/terminal/word_wrap.h"

#include <sys/ioctl.h>
#include <unistd.h>
#include <utf8proc.h>

#include <algorithm>
#include <utility>

#include "base/signed.h"

namespace banyan::cli {
namespace {

size_t width_of(std::string_view text) {
  size_t width = 0;
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  auto left = static_cast<utf8proc_ssize_t>(text.size());
  while (left > 0) {
    utf8proc_int32_t point = 0;
    utf8proc_ssize_t length = utf8proc_iterate(bytes, left, &point);
    if (length < 1) length = 1;  // invalid; shown as one character
    width += point >= 0 ? as_size(std::max(0, utf8proc_charwidth(point))) : 1;
    bytes += length;
    left -= length;
  }
  return width;
}

}  // namespace

size_t stdout_columns() {
  winsize window = {};
  bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 0;
  return known ? window.ws_col : 80;
}

void WordWrap::end_word() {
  size_t width = width_of(word_);
  bool breaks = !is_code() && column_ > 0 && width > 0 && width <= columns_ &&
                column_ + spaces_.size() + width > columns_;
  if (breaks) {
    out_ += '\n';
    column_ = 0;
    spaces_.clear();
  }
  out_ += spaces_ + word_;
  column_ += spaces_.size() + width;
  spaces_.clear();
  word_.clear();
}

std::string WordWrap::add(std::string_view piece) {
  for (char c : piece) {
    if (c == '\n') {
      end_word();
      if (line_begin_.starts_with("```")) fenced_ = !fenced_;
      out_ += '\n';
      column_ = 0;
      line_begin_.clear();
      continue;
    }
    if (line_begin_.size() < 4) line_begin_ += c;
    if (c == ' ') {
      if (!word_.empty()) end_word();
      spaces_ += c;
    } else {
      word_ += c;
    }
  }
  return std::exchange(out_, {});
}

std::string WordWrap::finish() {
  end_word();
  return std::exchange(out_, {});
}

}  // namespace banyan::cli
