// Whether the tests that interpret compiled kernels have launched every one of them.
#include <gtest/gtest.h>

#include <cstdlib>

#include "ptx/interpreted.h"

namespace banyan::coverage_test {
namespace {

class EveryEntry : public testing::Environment {
 public:
  void TearDown() override {
    if (std::getenv("BANYAN_PTX_COVERAGE") == nullptr) return;
    for (const auto& [entry, launches] : ptx::launches_by_entry()) {
      EXPECT_GT(launches, 0) << entry << ": no test of BANYAN_PTX_TESTS launches it";
    }
  }
};

const auto* const kEveryEntry = testing::AddGlobalTestEnvironment(new EveryEntry);

}  // namespace
}  // namespace banyan::coverage_test
