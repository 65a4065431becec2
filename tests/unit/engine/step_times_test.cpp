// The fit of step times to measurements, and its JSON form.
#include "engine/step_times.h"

#include <gtest/gtest.h>

#include "support/shared.h"

namespace banyan::test::step_times_test {
namespace {

StepsObserved observe(const StepTimes& times, int64_t steps, int64_t prompt_rows,
                      int64_t decode_rows) {
  return {.steps = steps,
          .prompt_rows = prompt_rows,
          .decode_rows = decode_rows,
          .time_s = static_cast<double>(steps - 1) * times.step_s +
                    times.seconds(prompt_rows, decode_rows)};
}

TEST(StepTimesFit, FindsWhatMadeTheObservations) {
  StepTimes times = {.step_s = 0.02, .prompt_row_s = 3e-4, .decode_row_s = 2e-3};
  std::vector<StepsObserved> observed;
  for (int64_t batch : {1, 8, 32}) {
    observed.push_back(observe(times, batch, batch * 512, batch - 1));
    observed.push_back(observe(times, 60, 0, 60 * batch));
  }
  Result<FittedSteps> fit = fit_step_times(observed);
  ASSERT_TRUE(fit) << fit.error().message;
  EXPECT_NEAR(fit->times.step_s, times.step_s, 1e-8);
  EXPECT_NEAR(fit->times.prompt_row_s, times.prompt_row_s, 1e-10);
  EXPECT_NEAR(fit->times.decode_row_s, times.decode_row_s, 1e-9);
  EXPECT_LT(fit->error, 1e-4);
}

TEST(StepTimesFit, NoTimeIsNegative) {
  // Steps of more rows took less.
  std::vector<StepsObserved> observed = {
      {.steps = 1, .prompt_rows = 100, .time_s = 0.1},
      {.steps = 10, .decode_rows = 10, .time_s = 0.20},
      {.steps = 10, .decode_rows = 80, .time_s = 0.18},
  };
  Result<FittedSteps> fit = fit_step_times(observed);
  ASSERT_TRUE(fit) << fit.error().message;
  EXPECT_EQ(fit->times.decode_row_s, 0);
  EXPECT_NEAR(fit->times.step_s, 0.019, 0.001);
  EXPECT_GT(fit->error, 0.01);
  EXPECT_LT(fit->error, 0.1);
}

TEST(StepTimesFit, OneBatchSizeDoesNotTellThemApart) {
  StepTimes times;
  std::vector<StepsObserved> observed = {observe(times, 1, 512, 0), observe(times, 60, 0, 60)};
  EXPECT_FALSE(fit_step_times(observed));
  EXPECT_FALSE(fit_step_times({}));
  observed.push_back({.steps = 0, .time_s = 1});
  EXPECT_FALSE(fit_step_times(observed));
}

TEST(StepTimesFile, IsWhatTheFitWritesAndIsChecked) {
  TemporaryFolder folder;
  auto read = [&](const std::string& text) {
    folder.write("times.json", text);
    return read_step_times(folder.path() + "/times.json");
  };
  FittedSteps fit = {.times = {.step_s = 0.25, .prompt_row_s = 1e-6, .decode_row_s = 0}};
  Json file = {{"machine", nullptr}, {"step_times", to_json(fit)}};
  Result<StepTimes> times = read(file.dump());
  ASSERT_TRUE(times) << times.error().message;
  EXPECT_EQ(*times, fit.times);
  for (const char* wrong :
       {"{}", "[]", R"({"step_times": null})", R"({"step_times": {}})",
        R"({"step_times": {"step_ms": 1, "row_us": "2", "decode_row_us": 3}})",
        R"({"step_times": {"step_ms": -1, "row_us": 2, "decode_row_us": 3}})"}) {
    EXPECT_FALSE(read(wrong)) << wrong;
  }
}

}  // namespace
}  // namespace banyan::test::step_times_test
