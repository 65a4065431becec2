// Many requests of a model, so many at once, for verbs that ask a list of questions.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>

#include "banyan/llm.h"

namespace banyan::cli {

struct ManyAsked {
  size_t at_once = 1;
  // The next request and what the caller calls it; none: that was the last. An error ends it all.
  struct Request {
    size_t index = 0;
    TextRequest request;
  };
  std::function<Result<std::optional<Request>>()> next;
  // What came of it, in the order in which requests end.
  std::function<Status(size_t index, Result<Generation> generation)> take;
};

// Both functions are called on this thread. Returns early when Ctrl-C was pressed: what runs then
// is cancelled and not taken.
Status ask_many(Llm& llm, const ManyAsked& asked);

}  // namespace banyan::cli
