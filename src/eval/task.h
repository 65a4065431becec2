// Evaluation tasks: how a question becomes a prompt, and how the answer is extracted from the text.
// kEvalTasks in task.cpp lists them; a new task is one entry there.
//
// The data is JSON Lines or one array of objects. A question may be preceded by examples ("shots")
// of its own group. An object with a "prompt" is a ready-made question and is asked unchanged.
//
// Stateless; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "banyan/status.h"
#include "base/json.h"

namespace banyan {

// One object of the data, as parsed by a task.
struct EvalQuestion {
  std::string group = {};   // examples are taken from the same group
  std::string header = {};  // precedes the examples
  std::string shot = {};    // the question with a worked answer, as an example
  std::string ask = {};     // the question, up to where the model continues
  std::string answer = {};  // as normalised by the task's `extract`
  bool complete = false;    // `ask` is the whole prompt
};

struct EvalTask {
  const char* name;     // as given on the command line: "gsm8k"
  const char* summary;  // for --help
  // Default file of examples, looked up next to the data.
  const char* shots_file;
  // The text that starts the next question; generation stops there.
  const char* stop;
  // `where` names the object in errors: "test.jsonl:17".
  Result<EvalQuestion> (*read)(const Json& object, const std::string& where);
  std::optional<std::string> (*extract)(std::string_view text);
};

std::span<const EvalTask> eval_tasks();
const EvalTask* eval_task_named(std::string_view name);

// The questions, in the data's order.
struct EvalItem {
  std::string prompt = {};
  std::string answer = {};
};

struct EvalSet {
  std::vector<EvalItem> items = {};
  int64_t shots = 0;  // per question
  // The data's first questions of each group serve as examples and are not asked.
  bool shots_own = false;
  uint64_t fingerprint = 0;  // over all prompts and answers
};

// File contents, with names for error messages.
struct EvalSource {
  std::string data, data_name;
  std::optional<std::string> shots;  // absent: use the data's own
  std::string shots_name;
};

Result<EvalSet> make_eval_set(const EvalTask& task, const EvalSource& source, int64_t shots);

}  // namespace banyan
