#include "base/status_line.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>

namespace banyan {
namespace {

size_t stderr_columns() {
  winsize size = {};
  bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

}  // namespace

StatusLine::StatusLine() : terminal_(isatty(STDERR_FILENO) == 1) {}

StatusLine::~StatusLine() {
  if (drawn_) fmt::print(stderr, "\r\033[K");
}

void StatusLine::show(std::string_view text) {
  if (!terminal_) return;
  // A line that wraps could not be erased.
  fmt::print(stderr, "\r\033[K{}", text.substr(0, stderr_columns() - 1));
  std::fflush(stderr);
  drawn_ = true;
}

}  // namespace banyan
