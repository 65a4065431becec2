// The predictions file of an evaluation: JSON lines, appended as predictions are made, so that an
// interrupted run resumes.
//
// Every line carries the run's parameters ("run"). A file is therefore never resumed with other
// parameters, and each line documents itself.
//
// A PredictionFile belongs to one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "banyan/status.h"
#include "base/json.h"

namespace banyan {

struct Prediction {
  int64_t index = 0;                       // question index
  std::optional<std::string> answer = {};  // extracted from the text, if possible
  std::string expected = {};
  bool correct = false;
  std::string text = {};
  std::string finish_reason = {};
  int64_t prompt_tokens = 0, completion_tokens = 0;
  std::string error = {};  // set if there is no text
};

// Parses a file: for each question whether its prediction is correct, or nothing if there is none.
// `kept_bytes` excludes an incomplete last line. kInvalidArgument: the file belongs to another run;
// the message says how it differs.
struct PredictionsRead {
  std::vector<std::optional<bool>> correct = {};  // by question index
  size_t kept_bytes = 0;
};
Result<PredictionsRead> read_predictions(std::string_view text, const std::string& name,
                                         const Json& run, size_t questions);

// An open file, locked exclusively until closed.
class PredictionFile {
 public:
  // Opens or creates the file and reads its contents.
  static Result<PredictionFile> open(const std::string& path, const Json& run, size_t questions);
  PredictionFile(PredictionFile&& other) noexcept;
  PredictionFile& operator=(PredictionFile&&) = delete;
  ~PredictionFile();

  const std::vector<std::optional<bool>>& correct() const { return correct_; }
  Status append(const Prediction& prediction);

 private:
  PredictionFile(std::string path, int descriptor) : path_(std::move(path)), file_(descriptor) {}

  std::string path_;
  int file_;
  Json run_;
  std::vector<std::optional<bool>> correct_;
};

}  // namespace banyan
