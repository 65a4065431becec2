#include "program/backend.h"

#include "base/error.h"

namespace banyan {

Status check_gen(const GenerationOptions& options) {
  if (options.prompt_logprobs_begin) {
    return invalid_argument("prompt_logprobs_begin of a gen: score() has those of a text");
  }
  if (options.age_s != 0) {
    return invalid_argument("age_s of a gen is {}; a program's calls have the program's age",
                            options.age_s);
  }
  return {};
}

}  // namespace banyan
