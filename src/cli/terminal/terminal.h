// The terminal: is there one, what may be sent to it, and Ctrl-C.
#pragma once

#include <csignal>
#include <cstddef>
#include <string>
#include <string_view>

namespace banyan::cli {

bool stdin_is_terminal();
bool stdout_is_terminal();
bool stderr_is_terminal();

// `text` for a terminal's eyes: control characters other than newline and tab, which could drive
// it, become U+FFFD.
std::string printable(std::string_view text);

// Escape sequences for less important lines on stderr; empty where they would be noise: no
// terminal, a dumb one, or NO_COLOR is set.
std::string_view dim();
std::string_view undim();

// Writes a result and flushes, so that a reader of a pipe sees it now. For a terminal it is made
// printable() first.
void write_stdout(std::string_view text);

// While it lives, Ctrl-C raises a flag instead of ending the program. At most one at a time.
class InterruptScope {
 public:
  enum class Second { kEndsProgram, kRaisesFlag };
  explicit InterruptScope(Second second);
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

  static bool raised();
  static void clear();
  // Waits until `descriptor` can be read or has ended, the flag is up (which may be before the
  // wait begins, when no signal would interrupt a read any more), `event`, an eventfd, was written
  // to (which this takes back), or another signal has come.
  enum class Wait { kInput, kInterrupted, kEvent, kOtherSignal };
  static Wait wait_for_input(int descriptor, int event = -1);

 private:
  struct sigaction before_ = {};
};

}  // namespace banyan::cli
