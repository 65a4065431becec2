#include "program/backend.h"

#include "base/error.h"

namespace banyan {

Status check_gen(const GenerationOptions& options) {
  if (options.prompt_logprobs_begin) {
    return invalid_argument(
        "gen does not support prompt_logprobs_begin; use score() for the logprobs of a text");
  }
  if (options.age_s != 0) {
    return invalid_argument("age_s of a gen is {}; a program's calls have the program's age",
                            options.age_s);
  }
  return {};
}

}  // namespace banyan
