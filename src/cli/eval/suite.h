// Asks an engine the cases of a suite (eval/suite.h), many at once.
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
  bool valid = false;           // the content follows the case's schema
  std::vector<TokenId> tokens;  // that the model said
  double bits = 0;              // of the case's answer, if the suite is scored
};

// Greedy answers of at most `max_tokens`, in the order of `cases`; `constrained`: under the case's
// schema. `answered` is told how many there are. Returns what there is when Ctrl-C was pressed.
Result<std::vector<SuiteAnswer>> ask_suite(Llm& llm, const std::vector<SuiteCase>& cases,
                                           int64_t max_tokens, bool constrained,
                                           const std::function<void(size_t)>& answered);

// How many bits the model takes for each case's answer behind its prompt.
Result<std::vector<SuiteAnswer>> score_suite(Llm& llm, const std::vector<SuiteCase>& cases,
                                             const std::function<void(size_t)>& answered);

}  // namespace banyan::cli
