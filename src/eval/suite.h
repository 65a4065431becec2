// Suites of questions with one right answer each, asked through the chat template: how good a model
// is at what banyan-nano was trained for (tools/nano/README.md). A suite is a file of JSON, an
// object a line:
//
//   {"suite": "tools", "messages": [...], "tools": [...], "think": false, "answer": ..., "about":
//   {...}}
//
// The answer is a text; a number for "arithmetic" and "everyday-sums"; what a story must name early
// for "everyday-stories"; a list of texts, of which one must be said, for the other "everyday-*";
// an object, with the schema that it follows in "schema", for "extraction"; {"name", "arguments"}
// or null for "tools". "about" says what a case is made of (steps, depth, ...).
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
  std::string schema;  // of the answer; empty: it has none
  Json about;
};

// What a model said.
struct SuiteReply {
  std::string content;
  Json call;  // {"name", "arguments"} of the first one; null: none
};

// `name` is the file's, for errors, which name the line too.
Result<std::vector<SuiteCase>> read_suite(std::string_view text, const std::string& name);

bool is_right(const SuiteCase& asked, const SuiteReply& reply);

// Whether the suite asks how likely its answers are, not for answers.
bool is_scored(std::string_view suite);

}  // namespace banyan
