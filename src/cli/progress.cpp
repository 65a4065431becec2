#include "cli/progress.h"

#include <fmt/format.h>

#include <cstdio>

#include "cli/format.h"
#include "cli/terminal.h"

namespace banyan::cli {

ProgressLine::ProgressLine(std::string what)
    : what_(std::move(what)), terminal_(stderr_is_terminal()) {}

ProgressLine::~ProgressLine() {
  if (drawn_) fmt::print(stderr, "\r\033[K");
}

void ProgressLine::update(int64_t bytes_done, int64_t bytes_total) {
  constexpr auto kInterval = std::chrono::milliseconds(100);
  if (!terminal_) return;
  Clock::time_point now = Clock::now();
  if (now < next_) return;
  next_ = now + kInterval;
  show(describe_progress(bytes_done, bytes_total,
                         std::chrono::duration<double>(now - begin_).count()));
}

void ProgressLine::show(const std::string& state) {
  if (!terminal_) return;
  fmt::print(stderr, "\r\033[K{}  {}", what_, state);
  std::fflush(stderr);
  drawn_ = true;
}

LoadProgress ProgressLine::load_progress() {
  return [this](int64_t bytes_done, int64_t bytes_total) { update(bytes_done, bytes_total); };
}

std::string describe_progress(int64_t bytes_done, int64_t bytes_total, double seconds) {
  double share =
      bytes_total > 0 ? static_cast<double>(bytes_done) / static_cast<double>(bytes_total) : 0;
  std::string text = fmt::format("{:3.0f}%  {} of {}", 100 * share, format_bytes(bytes_done),
                                 format_bytes(bytes_total));
  double rate = seconds > 0 ? static_cast<double>(bytes_done) / seconds : 0;
  if (rate > 0) {
    text += fmt::format("  {}/s  {:.0f} s left", format_bytes(static_cast<int64_t>(rate)),
                        static_cast<double>(bytes_total - bytes_done) / rate);
  }
  return text;
}

}  // namespace banyan::cli
