#include "support/shared.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace banyan::test {

std::string source_path(const std::string& relative) {
  return std::string(BANYAN_SOURCE_DIR) + "/" + relative;
}

std::string nano_model() {
  return source_path("models/banyan-nano");
}

std::string shared_path(const std::string& relative) {
  return std::string(BANYAN_SOURCE_DIR) + "/../shared/" + relative;
}

std::string program_path() {
  return BANYAN_PROGRAM;
}

bool shared_exists(const std::string& relative) {
  return std::filesystem::exists(shared_path(relative));
}

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "banyan_test_XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) std::abort();
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TemporaryFolder::write(const std::string& name, const std::string& bytes) const {
  std::string path = path_ + "/" + name;
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

}  // namespace banyan::test
