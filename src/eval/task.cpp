#include "eval/task.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/error.h"
#include "base/quote.h"
#include "base/space.h"
#include "eval/answers.h"

namespace banyan {
namespace {

constexpr size_t kOptionsMax = 10;  // A to J

Result<std::string> text_at(const Json& object, const char* key, const std::string& where) {
  auto found = object.find(key);
  if (found == object.end()) return corrupt("{}: {} is missing", where, key);
  if (!found->is_string()) return corrupt("{}: {} is not a string", where, key);
  return found->get<std::string>();
}

// A text or a number, as text.
Result<std::string> number_at(const Json& object, const char* key, const std::string& where) {
  auto found = object.find(key);
  bool bare = found != object.end() && found->is_number();
  std::string text = bare ? found->dump() : TRY(text_at(object, key, where));
  std::optional<std::string> number = last_number(text);
  if (!number) return corrupt("{}: {} contains no number: {}", where, key, quote(text));
  return *std::move(number);
}

Result<EvalQuestion> read_gsm8k(const Json& object, const std::string& where) {
  EvalQuestion q{.answer = TRY(number_at(object, "answer", where))};
  if (object.contains("prompt")) {
    q.complete = true;
    q.ask = TRY(text_at(object, "prompt", where));
    return q;
  }
  q.ask = fmt::format("Question: {}\nAnswer:", TRY(text_at(object, "question", where)));
  if (object["answer"].is_string()) {
    q.shot = fmt::format("{} {}\n\n", q.ask, object["answer"].get<std::string>());
  }
  return q;
}

Result<std::string> read_options(const Json& object, const std::string& where) {
  auto found = object.find("options");
  if (found == object.end() || !found->is_array() || found->empty() ||
      found->size() > kOptionsMax) {
    return corrupt("{}: options must be a list of 1 to {} strings", where, kOptionsMax);
  }
  std::string text;
  for (size_t i = 0; i < found->size(); ++i) {
    const Json& option = (*found)[i];
    if (!option.is_string())
      return corrupt("{}: options has {}, not a string", where, option.dump());
    text += fmt::format("{}. {}\n", static_cast<char>('A' + i), option.get<std::string>());
  }
  return text;
}

// The prompt format of MMLU-Pro's authors (evaluate_from_local.py in their repository).
Result<EvalQuestion> read_mmlu_pro(const Json& object, const std::string& where) {
  EvalQuestion q{.answer = TRY(text_at(object, "answer", where))};
  if (q.answer.size() != 1 || q.answer[0] < 'A' || q.answer[0] > 'J') {
    return corrupt("{}: answer is {}; it must be a letter from A to J", where, quote(q.answer));
  }
  if (object.contains("prompt")) {
    q.complete = true;
    q.ask = TRY(text_at(object, "prompt", where));
    return q;
  }
  constexpr std::string_view kThink = "Let's think step by step.";
  q.group = TRY(text_at(object, "category", where));
  q.header = fmt::format(
      "The following are multiple choice questions (with answers) about {}. Think step by step and "
      "then finish your answer with \"the answer is (X)\" where X is the correct letter choice."
      "\n\n\n",
      q.group);
  std::string question = TRY(text_at(object, "question", where));
  std::string options = TRY(read_options(object, where));
  std::string asked = fmt::format("Question:\n{}\nOptions:\n{}Answer: ", question, options);
  std::string worked = fmt::format("The answer is ({}).", q.answer);
  if (object.contains("cot_content")) {
    worked = TRY(text_at(object, "cot_content", where));
    if (worked.starts_with("A: ")) worked.erase(0, 3);
  }
  q.shot = fmt::format("{}{}\n\n", asked, worked);
  q.ask = fmt::format("{}{}", asked, kThink);
  return q;
}

constexpr std::array kEvalTasks = std::to_array<EvalTask>({
    {"gsm8k", "word problems whose answer is a number", "train.jsonl", "Question:", read_gsm8k,
     last_number},
    {"mmlu-pro", "questions with up to ten choices", "mmlu_pro_validation.jsonl",
     "Question:", read_mmlu_pro, chosen_letter},
});

using Questions = std::vector<EvalQuestion>;

Result<Questions> read_array(const EvalTask& task, std::string_view text, const std::string& name) {
  Json array = TRY(parse_json(text, name, {.bytes_max = 256 << 20}));
  Questions questions;
  for (const Json& object : array) {
    std::string where = fmt::format("{}: entry {}", name, questions.size() + 1);
    if (!object.is_object()) return corrupt("{} is not an object", where);
    questions.push_back(TRY(task.read(object, where)));
  }
  return questions;
}

Result<Questions> read_questions(const EvalTask& task, std::string_view text,
                                 const std::string& name) {
  size_t first = std::min(text.find_first_not_of(kSpace), text.size());
  if (text.substr(first).starts_with('[')) return read_array(task, text, name);
  Questions questions;
  int64_t number = 0;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    std::string where = fmt::format("{}:{}", name, ++number);
    if (line.find_first_not_of(kSpace) == line.npos) continue;
    Json object = TRY(parse_json(line, where));
    if (!object.is_object()) return corrupt("{}: the line is not an object", where);
    questions.push_back(TRY(task.read(object, where)));
  }
  return questions;
}

// The first `count` examples of each group, concatenated.
using Shots = std::map<std::string, std::vector<const EvalQuestion*>>;

Shots first_of_groups(const Questions& questions, int64_t count) {
  Shots shots;
  for (const EvalQuestion& q : questions) {
    if (q.complete || q.shot.empty()) continue;
    auto& group = shots[q.group];
    if (std::ssize(group) < count) group.push_back(&q);
  }
  return shots;
}

Result<EvalItem> make_item(const EvalQuestion& q, const Shots& shots, int64_t count,
                           const std::string& shots_name) {
  EvalItem item{.prompt = "", .answer = q.answer};
  if (!q.complete && count > 0) {
    auto found = shots.find(q.group);
    int64_t there = found == shots.end() ? 0 : std::ssize(found->second);
    if (there < count) {
      std::string about = q.group.empty() ? "" : " about " + quote(q.group);
      return invalid_argument("{} has only {} worked examples{}, but --num-shots asks for {}",
                              shots_name, there, about, count);
    }
    for (const EvalQuestion* shot : found->second) item.prompt += shot->shot;
  }
  item.prompt = q.header + item.prompt + q.ask;
  return item;
}

uint64_t fingerprint_of(const std::vector<EvalItem>& items) {
  uint64_t hash = 0;
  for (const EvalItem& item : items) {
    hash = XXH3_64bits_withSeed(item.prompt.data(), item.prompt.size(), hash);
    hash = XXH3_64bits_withSeed(item.answer.data(), item.answer.size(), hash);
  }
  return hash;
}

}  // namespace

std::span<const EvalTask> eval_tasks() {
  return kEvalTasks;
}

const EvalTask* eval_task_named(std::string_view name) {
  auto found = std::ranges::find(kEvalTasks, name, &EvalTask::name);
  return found == kEvalTasks.end() ? nullptr : &*found;
}

Result<EvalSet> make_eval_set(const EvalTask& task, const EvalSource& source, int64_t shots) {
  Questions questions = TRY(read_questions(task, source.data, source.data_name));
  bool all_complete = std::ranges::all_of(questions, &EvalQuestion::complete);
  EvalSet set{.shots = all_complete ? 0 : shots};
  set.shots_own = set.shots > 0 && !source.shots;
  Questions others;
  if (set.shots > 0 && source.shots) {
    others = TRY(read_questions(task, *source.shots, source.shots_name));
  }
  Shots examples = first_of_groups(source.shots ? others : questions, set.shots);
  for (const EvalQuestion& q : questions) {
    auto group = examples.find(q.group);
    bool is_shot = set.shots_own && group != examples.end() &&
                   std::ranges::find(group->second, &q) != group->second.end();
    if (is_shot) continue;
    set.items.push_back(TRY(
        make_item(q, examples, set.shots, set.shots_own ? source.data_name : source.shots_name)));
  }
  if (set.items.empty() && !questions.empty()) {
    return invalid_argument(
        "{}: all {} questions are taken as examples, so that none is left to ask; give fewer with "
        "--num-shots (0: none), or other examples with --shots",
        source.data_name, questions.size());
  }
  if (set.items.empty()) return corrupt("{}: the file contains no questions", source.data_name);
  set.fingerprint = fingerprint_of(set.items);
  return set;
}

}  // namespace banyan
