#include "cli/terminal/progress.h"

#include <fmt/format.h>

#include "cli/format.h"

namespace banyan::cli {

ProgressLine::ProgressLine(std::string what) : what_(std::move(what)) {
  show("");
}

void ProgressLine::update(int64_t bytes_done, int64_t bytes_total) {
  constexpr auto kInterval = std::chrono::milliseconds(100);
  if (!line_.visible()) return;
  Clock::time_point now = Clock::now();
  if (now < next_) return;
  next_ = now + kInterval;
  show(describe_progress(bytes_done, bytes_total,
                         std::chrono::duration<double>(now - begin_).count()));
}

void ProgressLine::show(const std::string& state) {
  line_.show(fmt::format("{}  {}", what_, state));
}

LoadProgress ProgressLine::load_progress() {
  return [this](int64_t bytes_done, int64_t bytes_total) { update(bytes_done, bytes_total); };
}

std::string describe_progress(int64_t bytes_done, int64_t bytes_total, double seconds) {
  bool end_known = bytes_done < bytes_total;
  auto done = static_cast<double>(bytes_done), total = static_cast<double>(bytes_total);
  std::string text = format_bytes(bytes_done);
  if (end_known)
    text = fmt::format("{:.0f}%  {} of {}", 100 * done / total, text, format_bytes(bytes_total));
  if (seconds <= 0 || bytes_done <= 0) return text;
  double rate = done / seconds;
  text += fmt::format("  {}/s", format_bytes(static_cast<int64_t>(rate)));
  if (end_known) text += fmt::format("  {:.0f} s left", (total - done) / rate);
  return text;
}

}  // namespace banyan::cli
