// Where tests find their data.
#pragma once

#include <gtest/gtest.h>

#include <string>

namespace banyan::test {

// A file or folder of the repository, for example source_path("tests/golden/llama").
std::string source_path(const std::string& relative);

// The trained model that comes with the repository: ten million parameters and a chat template.
std::string nano_model();

// Published data that lies next to the repository and may be absent, for example
// shared_path("models/stories260K"). Only for data that must be real; tests make everything else
// themselves or read it from the repository.
std::string shared_path(const std::string& relative);
bool shared_exists(const std::string& relative);

// The program that was built with the tests.
std::string program_path();

// A fresh empty folder, removed with the object.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  // Writes `bytes` to the file `name` in the folder and returns its path.
  std::string write(const std::string& name, const std::string& bytes) const;

 private:
  std::string path_;
};

}  // namespace banyan::test

// Skips the test, naming what is absent.
#define REQUIRE_SHARED(relative)                                             \
  do {                                                                       \
    if (!::banyan::test::shared_exists(relative)) {                          \
      GTEST_SKIP() << "needs published data that is not in the repository: " \
                   << ::banyan::test::shared_path(relative);                 \
    }                                                                        \
  } while (false)
