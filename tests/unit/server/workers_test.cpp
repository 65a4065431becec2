#include "server/http/workers.h"

#include <gtest/gtest.h>

#include "support/few_threads.h"

namespace banyan::workers_test {
namespace {

// The server hung at its start: it waited for the threads that had begun.
TEST(Workers, AThreadThatCannotStartIsAnError) {
  auto start = [] { Workers workers({.threads = 4, .queued_max = 1}); };
  EXPECT_EQ(test::with_few_threads(2, start), test::FewThreads::kThrew);
}

}  // namespace
}  // namespace banyan::workers_test
