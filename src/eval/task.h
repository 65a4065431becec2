// Tasks with questions that have one right answer: what a model is asked, and which answer its text
// gives. kEvalTasks in eval_task.cpp is the list; a further task is one entry there.
//
// Data is JSON, an object a line or one array of objects. A question may come with examples in
// front of it, "shots", of its own group. An object with a "prompt" is a question made elsewhere,
// which is asked as it stands.
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

// One object of the data, as a task reads it.
struct EvalQuestion {
  std::string group = {};   // examples come from the same group
  std::string header = {};  // before the examples
  std::string shot = {};    // this question with its worked answer, as an example for others
  std::string ask = {};     // this question, up to where the model goes on
  std::string answer = {};  // as the task's `extract` spells it
  bool complete = false;    // `ask` is all of the prompt
};

struct EvalTask {
  const char* name;     // as typed: "gsm8k"
  const char* summary;  // for --help
  // Looked for next to the data when no file of examples is named.
  const char* shots_file;
  // The text that begins a next question, where the answer ends.
  const char* stop;
  // `where` names the object in errors: "test.jsonl:17".
  Result<EvalQuestion> (*read)(const Json& object, const std::string& where);
  std::optional<std::string> (*extract)(std::string_view text);
};

std::span<const EvalTask> eval_tasks();
const EvalTask* eval_task_named(std::string_view name);

// What is asked, in the data's order.
struct EvalItem {
  std::string prompt = {};
  std::string answer = {};
};

struct EvalSet {
  std::vector<EvalItem> items = {};
  int64_t shots = 0;         // in front of each question
  bool shots_own = false;    // the data's first of each group, which are not asked themselves
  uint64_t fingerprint = 0;  // of all prompts and answers
};

// Texts of files, and their names for errors.
struct EvalSource {
  std::string data, data_name;
  std::optional<std::string> shots;  // absent: the data's own
  std::string shots_name;
};

Result<EvalSet> make_eval_set(const EvalTask& task, const EvalSource& source, int64_t shots);

}  // namespace banyan
