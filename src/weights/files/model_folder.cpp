#include "weights/files/model_folder.h"

#include <filesystem>
#include <fstream>
#include <string_view>

#include "base/error.h"
#include "base/gguf.h"
#include "base/signed.h"
#include "base/units.h"

namespace banyan {
namespace {

// Describes a file that was given instead of a folder, and suggests what to give.
std::string describe_file(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  char bytes[64] = {};
  stream.read(bytes, sizeof bytes);
  std::string_view head(bytes, as_size(stream.gcount()));
  std::string parent = std::filesystem::path(path).parent_path().string();
  std::string advice = fmt::format("give its folder, {}", parent.empty() ? "." : parent);
  if (head.starts_with("version https://git-lfs")) {
    return "a Git LFS pointer, not the file itself; `git lfs pull` fetches it";
  }
  if (head.starts_with("GGUF")) {
    return "a GGUF file, where a Hugging Face folder is needed";
  }
  if (head.starts_with("PK\x03\x04")) {
    return "a zip archive, as PyTorch writes weights; only safetensors is read, in a folder with "
           "config.json";
  }
  if (head.size() > 8 && head[8] == '{') return "one file of safetensors; " + advice;
  if (head.starts_with('{')) return "a JSON file; " + advice;
  if (path.ends_with(".gguf")) return "not a GGUF file: it does not begin with GGUF";
  std::error_code ignored;
  return fmt::format(
      "a file of {} that is no model; give the folder that has config.json and the weights",
      format_bytes(std::filesystem::file_size(path, ignored)));
}

// A folder with nothing but GGUF files: each of them is a model.
Status check_for_gguf(const std::filesystem::path& folder) {
  std::error_code code;
  if (std::filesystem::exists(folder / "config.json", code)) return {};
  for (const auto& entry : std::filesystem::directory_iterator(folder, code)) {
    if (entry.path().extension() != ".gguf") continue;
    return invalid_argument("{}: a folder without config.json; give the GGUF file in it, {}",
                            folder.string(), entry.path().string());
  }
  return {};
}

}  // namespace

Status check_model_folder(const std::string& folder) {
  std::error_code code;
  auto status = std::filesystem::status(folder, code);
  if (status.type() == std::filesystem::file_type::not_found) {
    return not_found("{}: no such folder", folder);
  }
  if (code) return io_error("{}: {}", folder, code.message());
  if (std::filesystem::is_directory(status)) return {};
  if (!std::filesystem::is_regular_file(status)) {
    return unsupported("{}: neither a file nor a folder", folder);
  }
  return unsupported("{}: {}", folder, describe_file(folder));
}

Status check_model_path(const std::string& path) {
  if (is_gguf_file(path)) return {};
  TRY(check_model_folder(path));
  return check_for_gguf(path);
}

}  // namespace banyan
