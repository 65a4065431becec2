// Runs `banyan serve` next to the program under test.
#pragma once

#include <chrono>
#include <string>
#include <thread>

#include "cli/program.h"

namespace banyan::test {

// `banyan serve` on a port of its own until the end of the test.
class ServingProgram {
 public:
  explicit ServingProgram(const std::string& model, std::vector<std::string> more = {}) {
    std::string err = folder_.write("err", "");
    std::vector<std::string> words = {"serve", "--model", model, "--port", "0", "--threads", "1"};
    words.insert(words.end(), more.begin(), more.end());
    OpenFile stderr_file(err, O_WRONLY);
    child_ = start_program(words, -1, -1, stderr_file.descriptor());
    const std::string ready = "banyan: ready on ";
    for (int i = 0; i < 2000 && url.empty(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      std::string said = read_file(err).value();
      size_t begin = said.find(ready), end = said.find('\n', begin);
      if (begin == said.npos || end == said.npos) continue;
      url = said.substr(begin + ready.size(), end - begin - ready.size());
    }
  }
  ~ServingProgram() { end(SIGTERM); }

  // Ends it with SIGKILL, or with a signal that lets it finish running requests.
  void end(int signal) {
    if (child_ <= 0) return;
    kill(child_, signal);
    waitpid(child_, nullptr, 0);
    child_ = -1;
  }

  std::string url;

 private:
  TemporaryFolder folder_;
  pid_t child_ = -1;
};

}  // namespace banyan::test
