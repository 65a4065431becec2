// Terminal detection, safe output to a terminal, and Ctrl-C.
#pragma once

#include <csignal>
#include <cstddef>
#include <string>
#include <string_view>

namespace banyan::cli {

bool stdin_is_terminal();
bool stdout_is_terminal();
bool stderr_is_terminal();

// `text` made safe for a terminal: control characters except newline and tab become U+FFFD.
std::string printable(std::string_view text);

// Escape sequences for less important lines on stderr; empty if stderr is not a terminal, the
// terminal is dumb, or NO_COLOR is set.
std::string_view dim();
std::string_view undim();

// Writes a result and flushes, so that a pipe's reader sees it immediately. On a terminal, the text
// is made printable() first.
void write_stdout(std::string_view text);

// While it lives, Ctrl-C sets a flag instead of ending the program. At most one at a time.
class InterruptScope {
 public:
  enum class Second { kEndsProgram, kRaisesFlag };
  explicit InterruptScope(Second second);
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

  static bool raised();
  static void clear();
  // Waits until `descriptor` is readable or closed, the flag is set, `event` (an eventfd) was
  // written, or another signal arrived. The flag may have been set before the call, when no signal
  // would interrupt a read any more. Resets `event`.
  enum class Wait { kInput, kInterrupted, kEvent, kOtherSignal };
  static Wait wait_for_input(int descriptor, int event = -1);

 private:
  struct sigaction before_ = {};
};

}  // namespace banyan::cli
