#include "program/workloads.h"

#include <array>
#include <string>
#include <vector>

#include "base/random.h"

namespace banyan {
namespace {

constexpr std::array kWords = {
    "river", "stone",  "garden",  "window", "paper", "morning",  "letter",  "bridge", "market",
    "music", "winter", "island",  "doctor", "table", "forest",   "silver",  "engine", "story",
    "night", "summer", "teacher", "road",   "water", "mountain", "kitchen", "bird",   "city",
    "house", "light",  "friend",  "green",  "seven", "under",    "finds",   "takes",  "slowly"};

// Topics of the generated text. Each workload has its own, for shared text and for each instance.
enum Topic : uint64_t {
  kFewShot = 1,
  kChoices,
  kTree,
  kSkeleton,
  kJudge,
  kChat,
  kAgent,
  kJson,
  kPassages,
  kVotes
};
constexpr uint64_t kShared = ~uint64_t{0};

// `count` words, determined by the arguments.
std::string words(int count, Topic topic, uint64_t instance, uint64_t part = 0) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    uint32_t drawn = philox(topic, instance, part << 32 | static_cast<uint64_t>(i))[0];
    text += i == 0 ? "" : " ";
    text += kWords[drawn % kWords.size()];
  }
  return text + ".";
}

// Generates exactly `count` tokens, ignoring end-of-text.
Part gen_tokens(std::string name, int64_t count) {
  return gen(std::move(name), {.max_new_tokens = count, .ignore_eos = true});
}

std::string numbered(const char* word, int number) {
  return std::string(word) + " " + std::to_string(number) + ": ";
}

// MMLU: five examples shared by all questions, one token each.
void few_shot(State& s, size_t index) {
  for (int i = 0; i < 5; ++i) {
    s += numbered("Question", i + 1) + words(90, kFewShot, kShared, i) + "\nAnswer: B\n\n";
  }
  s += "Question: " + words(50, kFewShot, index) + "\nAnswer:" + gen_tokens("answer", 1);
}

// HellaSwag: shared examples, and a selection among four endings.
void choices(State& s, size_t index) {
  for (int i = 0; i < 8; ++i) {
    s += numbered("Story", i + 1) + words(40, kChoices, kShared, i) + "\n";
  }
  std::vector<std::string> endings;
  for (int i = 0; i < 4; ++i) endings.push_back(" " + words(10, kChoices, index, i + 1));
  s += "Story: " + words(30, kChoices, index) + select("ending", endings);
}

// GSM8K by tree of thought: proposes steps, judges each, continues with the first two.
void tree_of_thought(State& s, size_t index) {
  constexpr int kDepth = 2, kWidth = 3, kKept = 2;
  s += "Solve the problem step by step. " + words(150, kTree, kShared) + "\n";
  s += "Problem: " + words(60, kTree, index) + "\n";
  std::vector<State> front = {s};
  for (int depth = 0; depth < kDepth; ++depth) {
    std::vector<State> next;
    for (State& state : front) {
      for (State& step : state.fork(kWidth)) {
        step += "Step:" + gen_tokens("step", 24) + "\nIs it right?" + gen_tokens("verdict", 2);
        next.push_back(step);
      }
    }
    for (const State& state : next) (void)state["verdict"];
    next.erase(next.begin() + kKept, next.end());
    front = std::move(next);
  }
  s += "Best:" + front.front()["step"] + "\nAnswer:" + gen_tokens("answer", 16);
}

// Skeleton of thought: an outline, then all its points in parallel.
void skeleton_of_thought(State& s, size_t index) {
  constexpr int kPoints = 4;
  s += "Write an outline first. " + words(80, kSkeleton, kShared) + "\n";
  s += "Question: " + words(40, kSkeleton, index) + "\nOutline:" + gen_tokens("outline", 32) + "\n";
  std::vector<State> branches = s.fork(kPoints);
  for (int i = 0; i < kPoints; ++i) {
    branches[i] += numbered("Point", i + 1) + gen_tokens("detail", 32);
  }
  s += join_text(branches, "detail") + "\n";
}

// Branch-solve-merge over an essay.
void judge(State& s, size_t index) {
  s += "You judge essays. " + words(100, kJudge, kShared) + "\n";
  s += "Essay: " + words(300, kJudge, index) + "\n";
  std::vector<State> branches = s.fork(3);
  for (size_t i = 0; i < branches.size(); ++i) {
    branches[i] += "Judge this: " + words(6, kJudge, kShared, i + 1) + gen_tokens("verdict", 24);
  }
  s += "Verdicts:\n" + join_text(branches, "verdict") + "\nGrade:" + gen_tokens("grade", 2);
  s += "\nReport:" + gen_tokens("report", 32);
}

// Four turns, each with a longer prompt.
void multi_turn_chat(State& s, size_t index) {
  s += "A conversation. " + words(60, kChat, kShared) + "\n";
  for (int turn = 0; turn < 4; ++turn) {
    s += "User: " + words(50, kChat, index, turn) + "\nAnswer:" + gen_tokens("answer", 24) + "\n";
  }
}

// ReAct: thought, action, observation, three times, after long instructions.
void react_agent(State& s, size_t index) {
  s += "You may use tools. " + words(250, kAgent, kShared) + "\n";
  s += "Question: " + words(20, kAgent, index) + "\n";
  for (int step = 1; step <= 3; ++step) {
    s += "Thought:" + gen_tokens("thought", 16) + "\nAction:" + gen_tokens("action", 8);
    s += "\nObservation: " + words(40, kAgent, index, step) + "\n";
  }
  s += "Answer:" + gen_tokens("answer", 8);
}

// JSON objects with a schema that forces much of the text.
void json_extraction(State& s, size_t index) {
  static const std::string schema = R"({"type": "object", "properties": {
      "first_name": {"type": "string", "pattern": "^[a-z]{3,12}$"},
      "country_of_residence": {"enum": ["France", "Kenya", "Japan", "Peru"]},
      "years_of_experience": {"type": "integer", "minimum": 0, "maximum": 60},
      "speaks_other_languages": {"type": "boolean"}},
    "required": ["first_name", "country_of_residence", "years_of_experience",
                 "speaks_other_languages"], "additionalProperties": false})";
  s += "Extract the person as JSON. " + words(100, kJson, kShared) + "\n";
  s += "Text: " + words(100, kJson, index) + "\nJSON: ";
  s += gen("person", {.max_new_tokens = 96, .grammar = GrammarSource::json_schema(schema)});
}

// Retrieval: three of eight passages, in collection order, so that some prompts share a prefix.
void retrieval(State& s, size_t index) {
  constexpr uint64_t kPassageCount = 8;
  s += "Answer from these passages.\n";
  for (uint64_t i = 0, passage = index % 4; i < 3; ++i, passage += 1 + index % 2) {
    s += "- " + words(100, kPassages, kShared, passage % kPassageCount) + "\n";
  }
  s += "Question: " + words(20, kPassages, index) + "\nAnswer:" + gen_tokens("answer", 24);
}

// Self-consistency: five sampled chains of thought about one problem.
void self_consistency(State& s, size_t index) {
  s += "Think step by step. " + words(100, kVotes, kShared) + "\n";
  s += "Problem: " + words(80, kVotes, index) + "\n";
  std::vector<State> branches = s.fork(5);
  for (State& branch : branches) {
    branch += "Thought:" + gen("thought", {.max_new_tokens = 32, .ignore_eos = true},
                               SamplingParams{.temperature = 0.8F});
    branch += "\nAnswer:" + gen_tokens("number", 3);
  }
  s += "Answers:" + join_text(branches, "number") + "\n";
}

constexpr std::array kWorkloads = {
    Workload{"few_shot", "a question after five shared examples, one token", few_shot},
    Workload{"choices", "select among four endings after shared examples", choices},
    Workload{"tree_of_thought", "two levels of three steps, each judged, two followed",
             tree_of_thought},
    Workload{"skeleton_of_thought", "an outline, then four points at once", skeleton_of_thought},
    Workload{"judge", "an essay judged in three branches, then graded", judge},
    Workload{"multi_turn_chat", "four turns", multi_turn_chat},
    Workload{"react_agent", "three steps of thought, action and observation", react_agent},
    Workload{"json_extraction", "an object by a schema", json_extraction},
    Workload{"retrieval", "three of eight passages and a question", retrieval},
    Workload{"self_consistency", "five sampled thoughts", self_consistency},
};

}  // namespace

std::span<const Workload> workloads() {
  return kWorkloads;
}

}  // namespace banyan
