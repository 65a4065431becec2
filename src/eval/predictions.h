// The file of an evaluation's predictions: one JSON object a line, written as each is there, so
// that a run that was cut off goes on where it ended.
//
// Every line has what the run was ("run"), so a file is never continued by a run that asks
// something else, and any part of it tells what it is.
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
  int64_t index = 0;                       // of the question
  std::optional<std::string> answer = {};  // what the text gives, if it gives any
  std::string expected = {};
  bool correct = false;
  std::string text = {};
  std::string finish_reason = {};
  int64_t prompt_tokens = 0, completion_tokens = 0;
  std::string error = {};  // why there is no text
};

// What a file's text says: for each question whether its prediction is correct; nothing for those
// that have none. `kept_bytes` is the length of the text without a last line that was not written
// to its end. kInvalidArgument: the text belongs to a run other than `run`, and how they differ.
struct PredictionsRead {
  std::vector<std::optional<bool>> correct = {};  // by index
  size_t kept_bytes = 0;
};
Result<PredictionsRead> read_predictions(std::string_view text, const std::string& name,
                                         const Json& run, size_t questions);

// An open file. Its writer has it for itself until it is closed.
class PredictionFile {
 public:
  // Opens or makes the file and reads what is in it.
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
