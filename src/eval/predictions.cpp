#include "eval/predictions.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/json_text.h"
#include "base/signed.h"

namespace banyan {
namespace {

constexpr size_t kFileBytesMax = size_t{4} << 30;

// Names the first key in which the two runs differ.
std::unexpected<Error> other_run(const Json& there, const Json& here, const std::string& where) {
  for (const auto& [key, value] : here.items()) {
    auto found = there.find(key);
    if (found != there.end() && *found == value) continue;
    return invalid_argument(
        "{} belongs to another run: its {} is {}, here it is {}; choose another --out, or the same "
        "options",
        where, key, found == there.end() ? "not given" : found->dump(), value.dump());
  }
  return invalid_argument("{} belongs to another run; choose another --out", where);
}

Status read_line(std::string_view line, const std::string& where, const Json& run,
                 std::vector<std::optional<bool>>& correct) {
  Json object = TRY(parse_json(line, where));
  if (!object.is_object() || !object.contains("run") || !object["run"].is_object()) {
    return corrupt("{} is not a prediction; choose another --out", where);
  }
  if (object["run"] != run) return other_run(object["run"], run, where);
  auto index = object.find("index"), right = object.find("correct");
  if (index == object.end() || !index->is_number_unsigned() || *index >= correct.size()) {
    return corrupt("{}: index is not a number below {}", where, correct.size());
  }
  if (right == object.end() || !right->is_boolean()) {
    return corrupt("{}: correct is neither true nor false", where);
  }
  std::optional<bool>& slot = correct[index->get<size_t>()];
  if (slot) return corrupt("{}: duplicate prediction for question {}", where, index->dump());
  slot = right->get<bool>();
  return {};
}

std::unexpected<Error> os_error(const std::string& path) {
  return io_error("{}: {}", path, std::strerror(errno));
}

}  // namespace

Result<PredictionsRead> read_predictions(std::string_view text, const std::string& name,
                                         const Json& run, size_t questions) {
  PredictionsRead read{.correct = std::vector<std::optional<bool>>(questions)};
  for (int64_t number = 1; read.kept_bytes < text.size(); ++number) {
    size_t end = text.find('\n', read.kept_bytes);
    if (end == text.npos) break;
    std::string_view line = text.substr(read.kept_bytes, end - read.kept_bytes);
    TRY(read_line(line, fmt::format("{}:{}", name, number), run, read.correct));
    read.kept_bytes = end + 1;
  }
  return read;
}

Result<PredictionFile> PredictionFile::open(const std::string& path, const Json& run,
                                            size_t questions) {
  int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (descriptor < 0) return os_error(path);
  PredictionFile file(path, descriptor);
  if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    return io_error("{}: another run is writing it", path);
  }
  std::string text = TRY(read_file(path, kFileBytesMax));
  PredictionsRead read = TRY(read_predictions(text, path, run, questions));
  if (read.kept_bytes < text.size() &&
      ::ftruncate(descriptor, static_cast<off_t>(read.kept_bytes)) != 0) {
    return os_error(path);
  }
  file.run_ = run;
  file.correct_ = std::move(read.correct);
  return file;
}

PredictionFile::PredictionFile(PredictionFile&& other) noexcept
    : path_(std::move(other.path_)),
      file_(std::exchange(other.file_, -1)),
      run_(std::move(other.run_)),
      correct_(std::move(other.correct_)) {}

PredictionFile::~PredictionFile() {
  if (file_ >= 0) ::close(file_);
}

Status PredictionFile::append(const Prediction& p) {
  Json line = {{"run", run_},
               {"index", p.index},
               {"prediction", p.answer ? Json(*p.answer) : Json()},
               {"answer", p.expected},
               {"correct", p.correct},
               {"finish_reason", p.finish_reason},
               {"prompt_tokens", p.prompt_tokens},
               {"completion_tokens", p.completion_tokens},
               {"text", p.text}};
  if (!p.error.empty()) line["error"] = p.error;
  std::string text = dump_json(line) + "\n";
  for (std::string_view rest = text; !rest.empty();) {
    ssize_t count = ::write(file_, rest.data(), rest.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return os_error(path_);
    rest.remove_prefix(as_size(count));
  }
  at(correct_, p.index) = p.correct;
  return {};
}

}  // namespace banyan
