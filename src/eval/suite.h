// Question suites with one right answer per question, asked through the chat template. They test
// what banyan-nano was trained for (tools/nano/README.md). A suite is a JSON Lines file:
//
//   {"suite": "tools", "messages": [...], "tools": [...], "think": false,
//    "answer": ..., "about": {...}}
//
// The type of "answer" depends on the suite. "arithmetic" and "everyday-sums": a number.
// "everyday-stories": the text that a story must mention early. Other "everyday-*": a list of
// accepted texts. "extraction": an object, whose schema is in "schema". "tools": {"name",
// "arguments"} or null. All others: a text. "about" describes the case (steps, depth, ...).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "banyan/status.h"
#include "base/json.h"

namespace banyan {

struct SuiteCase {
  std::string suite;
  Json messages;
  Json tools;  // null: none
  bool think = false;
  Json answer;
  std::string schema;  // of the answer; empty: none
  Json about;
};

// The model's reply.
struct SuiteReply {
  std::string content;
  Json call;  // {"name", "arguments"} of the first call; null: none
};

// `name` is the file name for error messages, which also give the line.
Result<std::vector<SuiteCase>> read_suite(std::string_view text, const std::string& name);

bool is_right(const SuiteCase& asked, const SuiteReply& reply);

// Whether the suite scores the likelihood of its answers instead of generating.
bool is_scored(std::string_view suite);

}  // namespace banyan
