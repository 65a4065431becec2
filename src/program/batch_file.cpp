#include "program/batch_file.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/json_text.h"
#include "base/quote.h"

namespace banyan {
namespace {

constexpr std::string_view kLineBegin = "{\"index\":";
constexpr size_t kBatchBytesMax = size_t{16} << 30;

Json usage_json(const CallUsage& usage) {
  return {{"calls", usage.calls},
          {"prompt_tokens", usage.prompt_tokens},
          {"cached_tokens", usage.cached_tokens},
          {"completion_tokens", usage.completion_tokens},
          {"calls_saved", usage.calls_saved},
          {"prompt_tokens_saved", usage.prompt_tokens_saved}};
}

CallUsage read_usage(const Json& json) {
  auto count = [&](const char* name) { return json.value(name, int64_t{0}); };
  return {.calls = count("calls"),
          .prompt_tokens = count("prompt_tokens"),
          .cached_tokens = count("cached_tokens"),
          .completion_tokens = count("completion_tokens"),
          .calls_saved = count("calls_saved"),
          .prompt_tokens_saved = count("prompt_tokens_saved")};
}

BatchResult read_result(const Json& line) {
  BatchResult result{.variables = {}, .text = line.value("text", std::string()), .error = {}};
  for (const auto& [name, value] : line.at("variables").items()) {
    result.variables.emplace_back(name, value.get<std::string>());
  }
  if (line.contains("usage")) result.usage = read_usage(line["usage"]);
  return result;
}

// Parses one line of the file and stores its result.
Status take_line(std::string_view text, const std::string& where, const BatchFile::InputKey& key,
                 std::vector<BatchResult>& results, std::vector<bool>& done) {
  Json line = TRY(parse_json(text, where));
  if (!line.is_object() || !line.contains("index") || !line["index"].is_number_unsigned()) {
    return corrupt("{}: not a result of a batch: there is no \"index\"", where);
  }
  size_t index = line["index"].get<size_t>();
  if (index >= results.size()) {
    return invalid_argument("{}: index {}, but this batch has {} inputs; name another output file",
                            where, index, results.size());
  }
  try {
    if (key && line.value("input", std::string()) != key(index)) {
      return invalid_argument("{}: index {} had another input; name another output file", where,
                              index);
    }
    if (line.contains("error")) return {};
    results[index] = read_result(line);
  } catch (const Json::exception& e) {
    return corrupt("{}: not a result of a batch: {}", where, e.what());
  }
  done[index] = true;
  return {};
}

}  // namespace

Result<BatchFile> BatchFile::open(const std::string& path, InputKey input_key,
                                  std::vector<BatchResult>& results, std::vector<bool>& done) {
  if (file_exists(path)) {
    std::string text = TRY(read_file(path, kBatchBytesMax));
    size_t whole = text.rfind('\n') + 1;  // 0 if there is none
    std::string_view rest = std::string_view(text).substr(whole);
    if (!rest.substr(0, kLineBegin.size()).starts_with(kLineBegin.substr(0, rest.size()))) {
      return corrupt("{}: not the results of a batch; name another output file", path);
    }
    std::string_view lines = std::string_view(text).substr(0, whole);
    for (size_t number = 1; !lines.empty(); ++number) {
      size_t end = lines.find('\n');
      TRY(take_line(lines.substr(0, end), fmt::format("{}: line {}", path, number), input_key,
                    results, done));
      lines.remove_prefix(end + 1);
    }
    std::error_code code;
    if (whole < text.size()) std::filesystem::resize_file(path, whole, code);
    if (code) return io_error("{}: {}", path, code.message());
  }
  BatchFile file;
  file.file_.reset(std::fopen(path.c_str(), "ab"));
  if (!file.file_) return io_error("{}: {}", path, std::strerror(errno));
  file.path_ = path;
  file.input_key_ = std::move(input_key);
  return file;
}

Status BatchFile::write(size_t index, const BatchResult& result) {
  Json line = {{"index", index}};
  if (input_key_) line["input"] = input_key_(index);
  Json variables = Json::object();
  for (const auto& [name, value] : result.variables) variables[name] = value;
  line["variables"] = std::move(variables);
  line["text"] = result.text;
  if (result.error) {
    line["error"] = {{"code", to_string(result.error->code)}, {"message", result.error->message}};
  }
  line["usage"] = usage_json(result.usage);
  std::string text = dump_json(line) + "\n";
  if (std::fwrite(text.data(), 1, text.size(), file_.get()) != text.size() ||
      std::fflush(file_.get()) != 0) {
    return io_error("{}: {}", path_, std::strerror(errno));
  }
  return {};
}

}  // namespace banyan
