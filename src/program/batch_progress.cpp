// The progress line of a batch.
#include <fmt/format.h>

#include <chrono>
#include <memory>

#include "banyan/program.h"
#include "base/os/status_line.h"

namespace banyan {
namespace {

class BatchLine {
 public:
  explicit BatchLine(std::string what) : what_(std::move(what)) {}

  void show(const BatchProgress& p) {
    if (!line_) line_.emplace();
    size_t ran = p.done - p.skipped;
    double seconds = std::chrono::duration<double>(Clock::now() - begin_).count();
    std::string text = fmt::format("{}  {} of {}", what_, p.done, p.total);
    if (p.failed > 0) text += fmt::format(", {} failed", p.failed);
    if (ran > 0 && seconds > 0) {
      double rate = ran / seconds;
      text += fmt::format("  {:.{}f}/s", rate, rate < 10 ? 1 : 0);
      text += fmt::format("  {:.0f} s left", static_cast<double>(p.total - p.done) / rate);
    }
    line_->show(text);
    if (p.done == p.total) line_.reset();
  }

 private:
  using Clock = std::chrono::steady_clock;

  const std::string what_;
  const Clock::time_point begin_ = Clock::now();
  std::optional<StatusLine> line_;
};

}  // namespace

std::function<void(const BatchProgress&)> progress_line(std::string what) {
  auto line = std::make_shared<BatchLine>(std::move(what));
  return [line](const BatchProgress& progress) { line->show(progress); };
}

}  // namespace banyan
