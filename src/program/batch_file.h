// The results of a batch as lines of JSON, from which a later run goes on.
//
//   {"index": 3, "input": "...", "variables": {"answer": "7"}, "text": "...", "usage": {...}}
//   {"index": 4, "input": "...", "error": {"code": "cancelled", "message": "..."}, ...}
//
// A line that a crash cut off is the last one; it is cut away and its program runs again.
#pragma once

#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "banyan/program.h"

namespace banyan {

class BatchFile {
 public:
  using InputKey = std::function<std::string(size_t index)>;

  BatchFile() = default;

  // Reads the file at `path`, if there is one, into `results` and `done` (of those without an
  // error), and opens it for more. Errors name the line that is none of this batch.
  static Result<BatchFile> open(const std::string& path, InputKey input_key,
                                std::vector<BatchResult>& results, std::vector<bool>& done);

  bool is_open() const { return file_ != nullptr; }
  // One line, flushed.
  Status write(size_t index, const BatchResult& result);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  std::string path_;
  InputKey input_key_;
  std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace banyan
