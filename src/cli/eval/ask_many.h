// Runs many requests on a model with bounded concurrency, for verbs that ask a list of questions.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>

#include "banyan/llm.h"

namespace banyan::cli {

struct ManyAsked {
  size_t at_once = 1;
  // The next request and the caller's index for it; nothing after the last. An error aborts the
  // run.
  struct Request {
    size_t index = 0;
    TextRequest request;
  };
  std::function<Result<std::optional<Request>>()> next;
  // Receives each result, in order of completion.
  std::function<Status(size_t index, Result<Generation> generation)> take;
};

// Calls both functions on this thread. Returns early on Ctrl-C: running requests are cancelled and
// their results dropped.
Status ask_many(Llm& llm, const ManyAsked& asked);

}  // namespace banyan::cli
