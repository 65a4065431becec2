#include "base/os/status_line.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/os/standard_error.h"

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
  if (drawn_) write_stderr("\r\033[K");
}

void StatusLine::show(std::string_view text) {
  if (!terminal_) return;
  // Cut to the terminal's width, since a wrapped line cannot be erased.
  write_stderr(fmt::format("\r\033[K{}", text.substr(0, stderr_columns() - 1)));
  drawn_ = true;
}

}  // namespace banyan
