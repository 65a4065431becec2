#include "kernels/choice/choice_file.h"

#include <fcntl.h>
#include <fmt/ranges.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/json_text.h"

namespace banyan {
namespace {

constexpr int kFormat = 1;
constexpr size_t kFileBytesMax = 64 << 10;

// The speeds of one format; empty unless each table has a plausible one.
TableSpeeds read_speeds(const Json& speeds, const std::vector<std::string>& tables) {
  TableSpeeds read;
  for (const std::string& table : tables) {
    auto it = speeds.find(table);
    if (it == speeds.end() || !it->is_number()) return {};
    auto speed = it->get<double>();
    if (!std::isfinite(speed) || speed <= 0) return {};
    read.push_back(speed);
  }
  return read;
}

}  // namespace

std::string describe_machine_of(const Processor& processor,
                                const std::vector<std::string>& tables) {
  return fmt::format("{} family {} model {} stepping {}, kernels {}, revision {}", processor.vendor,
                     processor.family, processor.model, processor.stepping, fmt::join(tables, " "),
                     kArithmeticRevision);
}

std::optional<ProbedChoice> read_choice(const std::string& path, const std::string& machine,
                                        const std::vector<std::string>& tables) {
  Result<std::string> text = read_file(path, kFileBytesMax);
  if (!text) return std::nullopt;
  Result<Json> json = parse_json(*text, path);
  if (!json || !json->is_object()) return std::nullopt;
  if (json->value("format", Json()) != kFormat) return std::nullopt;
  if (json->value("machine", Json()) != machine) return std::nullopt;
  Json date = json->value("date", Json()), speeds = json->value("speeds", Json());
  if (!date.is_string() || !speeds.is_object()) return std::nullopt;
  ProbedChoice choice{.date = date.get<std::string>()};
  for (size_t f = 0; f < kGemmFormats.size(); ++f) {
    Json of_format = speeds.value(std::string(kGemmFormats[f].name), Json());
    if (!of_format.is_object()) return std::nullopt;
    choice.speeds[f] = read_speeds(of_format, tables);
    if (choice.speeds[f].empty()) return std::nullopt;
  }
  return choice;
}

Status write_choice(const std::string& path, const std::string& machine,
                    const std::vector<std::string>& tables, const ProbedChoice& choice) {
  Json speeds = Json::object();
  for (size_t f = 0; f < kGemmFormats.size(); ++f) {
    Json& of_format = speeds[std::string(kGemmFormats[f].name)] = Json::object();
    for (size_t t = 0; t < tables.size(); ++t) of_format[tables[t]] = choice.speeds[f][t];
  }
  Json json = {{"format", kFormat},
               {"machine", machine},
               {"date", choice.date},
               {"speeds", std::move(speeds)}};
  return replace_file(path, dump_json(json) + "\n");
}

Result<ChoiceLock> ChoiceLock::take(const std::string& path) {
  using std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kWait{120'000}, kPoll{20};
  std::error_code code;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), code);
  int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (descriptor < 0) return io_error("{}: {}", path, std::strerror(errno));
  ChoiceLock lock(descriptor);
  for (auto end = steady_clock::now() + kWait;; std::this_thread::sleep_for(kPoll)) {
    if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0) return lock;
    if (errno != EWOULDBLOCK && errno != EINTR) break;
    if (steady_clock::now() > end) return io_error("{}: another process keeps the lock", path);
  }
  return io_error("{}: {}", path, std::strerror(errno));
}

ChoiceLock::ChoiceLock(ChoiceLock&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}

ChoiceLock::~ChoiceLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace banyan
