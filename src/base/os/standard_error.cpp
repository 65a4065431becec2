#include "base/os/standard_error.h"

#include <fcntl.h>
#include <spdlog/details/os.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>

#include "base/log.h"
#include "base/os/background_writer.h"

namespace banyan {
namespace {

// Never destroyed, since threads may log until the process exits.
std::atomic<BackgroundWriter*> background = nullptr;

class StderrSink : public spdlog::sinks::base_sink<std::mutex> {
 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    message.color_range_start = message.color_range_end = 0;
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    std::string_view text(line.data(), line.size());
    size_t begin = message.color_range_start, end = message.color_range_end;
    if (!coloured_ || begin >= end) return write_stderr(text);
    write_stderr(fmt::format("{}{}{}\033[m{}", text.substr(0, begin), kColours[message.level],
                             text.substr(begin, end - begin), text.substr(end)));
  }
  void flush_() override {}

 private:
  static constexpr std::array kColours = {
      "\033[37m",        "\033[36m",        "\033[32m", "\033[33m\033[1m",
      "\033[31m\033[1m", "\033[1m\033[41m", ""};
  const bool coloured_ =
      spdlog::details::os::in_terminal(stderr) && spdlog::details::os::is_color_terminal();
};

}  // namespace

void write_stderr(std::string_view text) {
  if (BackgroundWriter* writer = background.load()) return writer->write(text);
  (void)std::fwrite(text.data(), 1, text.size(), stderr);
}

void write_stderr_in_background() {
  static std::once_flag once;
  std::call_once(once, [] { background = new BackgroundWriter(STDERR_FILENO); });
}

void flush_stderr() {
  if (BackgroundWriter* writer = background.load()) writer->flush();
}

void log_to_stderr() {
  auto logger = std::make_shared<spdlog::logger>("banyan", std::make_shared<StderrSink>());
  logger->set_error_handler([](const std::string&) {});  // the default writes to stderr itself
  spdlog::set_default_logger(std::move(logger));
}

void occupy_standard_streams() {
  for (int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) != -1 || errno != EBADF) continue;
    // open() returns the lowest free number, which is the missing one.
    (void)!open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

}  // namespace banyan
