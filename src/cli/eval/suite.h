// Runs the cases of a suite (eval/suite.h) on an engine, many concurrently.
//
// One thread.
#pragma once

#include <functional>
#include <vector>

#include "banyan/llm.h"
#include "eval/suite.h"

namespace banyan::cli {

struct SuiteAnswer {
  SuiteReply reply;
  bool right = false;
  bool valid = false;           // the content is valid under the case's schema
  std::vector<TokenId> tokens;  // output tokens
  double bits = 0;              // for the case's answer, if the suite is scored
};

// Greedy answers of at most `max_tokens`, in the order of `cases`; with `constrained`, under the
// case's schema. Calls `answered` with the number done. On Ctrl-C, returns the answers so far.
Result<std::vector<SuiteAnswer>> ask_suite(Llm& llm, const std::vector<SuiteCase>& cases,
                                           int64_t max_tokens, bool constrained,
                                           const std::function<void(size_t)>& answered);

// The number of bits that the model needs for each case's answer, given its prompt.
Result<std::vector<SuiteAnswer>> score_suite(Llm& llm, const std::vector<SuiteCase>& cases,
                                             const std::function<void(size_t)>& answered);

}  // namespace banyan::cli
