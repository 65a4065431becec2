// Unwraps a Result in a test's setup, or aborts with its error.
#pragma once

#include <utility>

#include "banyan/status.h"
#include "base/check.h"

namespace banyan::test {

template <class T>
T value_or_abort(Result<T> result) {
  CHECK(result.has_value(), "{}", result.error().message);
  return *std::move(result);
}

}  // namespace banyan::test
