// The results of a batch as JSON lines, from which a later run resumes.
//
//   {"index": 3, "input": "...", "variables": {"answer": "7"}, "text": "...", "usage": {...}}
//   {"index": 4, "input": "...", "error": {"code": "cancelled", "message": "..."}, ...}
//
// A crash may truncate the last line; it is removed and its program runs again.
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

  // Reads the file at `path`, if it exists, into `results`, marks results without an error in
  // `done`, and opens the file for appending. Errors name a line that does not belong to this
  // batch.
  static Result<BatchFile> open(const std::string& path, InputKey input_key,
                                std::vector<BatchResult>& results, std::vector<bool>& done);

  bool is_open() const { return file_ != nullptr; }
  // Appends one line and flushes.
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
