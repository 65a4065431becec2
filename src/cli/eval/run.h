// An evaluation in progress: the questions left, the answers so far, and the two ways to get
// answers: our own engine or a server.
//
// One thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "banyan/llm.h"
#include "cli/terminal/progress.h"
#include "client/url.h"
#include "eval/predictions.h"
#include "eval/task.h"

namespace banyan::cli {

// A model's answer to a question.
struct EvalAnswer {
  std::string text = {};
  std::string finish_reason = {};
  int64_t prompt_tokens = 0, completion_tokens = 0;
  std::string error = {};  // why it can never be asked; counts as wrong
};

class EvalRun {
 public:
  // The first `questions` of the set. All arguments must outlive the object.
  EvalRun(const EvalTask& task, const EvalSet& set, size_t questions, PredictionFile& file);

  // The next question without a prediction.
  std::optional<size_t> next();
  const EvalItem& item(size_t index) const { return set_.items[index]; }
  const EvalTask& task() const { return task_; }
  Status record(size_t index, EvalAnswer answer);
  // Records a failed request; a later run asks again.
  void fail(const std::string& reason) { ++failures_[reason]; }
  void show();
  // Removes the progress line.
  void end() { line_.reset(); }

  int64_t correct() const { return correct_; }
  int64_t done() const { return done_; }
  int64_t questions() const { return questions_; }
  int64_t unanswerable() const { return unanswerable_; }
  const std::map<std::string, int64_t>& failures() const { return failures_; }

 private:
  using Clock = std::chrono::steady_clock;

  const EvalTask& task_;
  const EvalSet& set_;
  size_t questions_;
  PredictionFile& file_;
  std::optional<ProgressLine> line_;  // until end()
  Clock::time_point begin_ = Clock::now(), next_shown_ = begin_;
  size_t place_ = 0;
  int64_t done_ = 0, done_before_ = 0, correct_ = 0, unanswerable_ = 0, tokens_ = 0;
  std::map<std::string, int64_t> failures_;
};

// How to ask questions.
struct EvalStyle {
  TextRequest request;  // all but the prompt
  bool chat = false;    // ask as a user message
  int parallel = 1;     // concurrent requests
};

struct EvalServer {
  ServerUrl url;
  std::string model, api_key;
  double timeout_s = 0;  // per answer
};

// Both return early on Ctrl-C.
Status run_in_engine(Llm& llm, const EvalStyle& style, EvalRun& run);
Status run_on_server(const EvalServer& server, const EvalStyle& style, EvalRun& run);

// The server's name for its first model.
Result<std::string> served_model(const EvalServer& server, const std::string& base_url);

}  // namespace banyan::cli
