#include "cli/terminal/terminal.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <string>

#include "base/check.h"

namespace banyan::cli {
namespace {

volatile std::sig_atomic_t interrupted = 0;
int interrupt_event = -1;

void on_interrupt(int) {
  int error = errno;
  interrupted = 1;
  uint64_t one = 1;
  // A failure cannot be handled here; the flag is set anyway.
  [[maybe_unused]] ssize_t written = write(interrupt_event, &one, sizeof one);
  errno = error;
}

bool stderr_has_style() {
  static const bool styled = [] {
    const char* term = std::getenv("TERM");
    const char* no_color = std::getenv("NO_COLOR");
    return stderr_is_terminal() && term != nullptr && std::string_view(term) != "dumb" &&
           (no_color == nullptr || *no_color == '\0');
  }();
  return styled;
}

}  // namespace

bool stdin_is_terminal() {
  return isatty(STDIN_FILENO) == 1;
}
bool stdout_is_terminal() {
  return isatty(STDOUT_FILENO) == 1;
}
bool stderr_is_terminal() {
  return isatty(STDERR_FILENO) == 1;
}

std::string printable(std::string_view text) {
  constexpr std::string_view kReplacement = "\uFFFD";
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    auto byte = static_cast<unsigned char>(text[i]);
    if ((byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7f) {
      out += kReplacement;
    } else if (byte == 0xc2 && i + 1 < text.size() &&
               static_cast<unsigned char>(text[i + 1]) < 0xa0) {
      out += kReplacement;  // U+0080 to U+009F are control characters too
      ++i;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string_view dim() {
  return stderr_has_style() ? "\033[2m" : "";
}
std::string_view undim() {
  return stderr_has_style() ? "\033[0m" : "";
}

void write_stdout(std::string_view text) {
  static const bool terminal = stdout_is_terminal();
  std::string safe;
  if (terminal) text = safe = printable(text);
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

InterruptScope::InterruptScope(Second second) {
  CHECK(interrupt_event < 0, "one InterruptScope at a time");
  interrupted = 0;
  interrupt_event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  struct sigaction action = {};
  action.sa_handler = on_interrupt;
  // Restart writes, or text that a full terminal or pipe did not accept yet would be lost. Code
  // that waits for input uses wait_for_input().
  action.sa_flags = SA_RESTART;
  if (second == Second::kEndsProgram) action.sa_flags |= static_cast<int>(SA_RESETHAND);
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &before_);
}

InterruptScope::~InterruptScope() {
  sigaction(SIGINT, &before_, nullptr);
  close(interrupt_event);
  interrupt_event = -1;
}

bool InterruptScope::raised() {
  return interrupted != 0;
}

void InterruptScope::clear() {
  uint64_t count = 0;
  // Fails if there is nothing to consume, which is fine.
  [[maybe_unused]] ssize_t taken = read(interrupt_event, &count, sizeof count);
  interrupted = 0;
}

InterruptScope::Wait InterruptScope::wait_for_input(int descriptor, int event) {
  pollfd watched[] = {{descriptor, POLLIN, 0}, {interrupt_event, POLLIN, 0}, {event, POLLIN, 0}};
  int ready = poll(watched, std::size(watched), -1);
  if (raised()) return Wait::kInterrupted;
  if (ready > 0 && watched[2].revents != 0) {
    uint64_t count = 0;
    [[maybe_unused]] ssize_t taken = read(event, &count, sizeof count);
    return Wait::kEvent;
  }
  return ready > 0 ? Wait::kInput : Wait::kOtherSignal;
}

}  // namespace banyan::cli
