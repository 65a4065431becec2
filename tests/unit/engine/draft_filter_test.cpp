// The trained filter of draft tokens: what it computes, and the files that are refused.
#include "engine/drafters/draft_filter.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "support/drive.h"
#include "support/safetensors.h"
#include "support/shared.h"

namespace banyan::test::draft_filter_test {
namespace {

std::string bytes_of(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

// Two hidden units: one follows the confidence, the other the position.
std::vector<TestTensor> filter_tensors() {
  return {{"0.weight", "F32", {2, 3}, bytes_of({0, 1, 0, 0, 0, 1})},
          {"0.bias", "F32", {2}, bytes_of({5, -2})},
          {"2.weight", "F32", {1, 2}, bytes_of({0.5f, -1})},
          {"2.bias", "F32", {1}, bytes_of({-0.25f})}};
}

std::string refusal(const std::vector<TestTensor>& tensors) {
  TemporaryFolder folder;
  auto filter = DraftFilter::load(folder.write("filter.safetensors", safetensors_file(tensors)));
  return filter ? "" : filter.error().message;
}

TEST(DraftFilter, IsTwoLayersOverJointProbabilityConfidenceAndPosition) {
  TemporaryFolder folder;
  auto filter =
      DraftFilter::load(folder.write("filter.safetensors", safetensors_file(filter_tensors())));
  ASSERT_TRUE(filter.has_value()) << filter.error().message;
  auto expected = [](double confidence, double position) {
    double out =
        -0.25 + 0.5 * std::max(0.0, 5 + std::log(confidence)) - std::max(0.0, position - 2);
    return 1 / (1 + std::exp(-out));
  };
  EXPECT_NEAR((*filter)->chance({0, 0.5f, 0.25}), expected(0.5, 0), 1e-6);
  EXPECT_NEAR((*filter)->chance({4, 0.9f, 0.1}), expected(0.9, 4), 1e-6);
  EXPECT_NEAR((*filter)->chance({100, 0, 0}), expected(1e-6, 16), 1e-6) << "cut off";
}

TEST(DraftFilter, RefusesFilesThatAreNone) {
  EXPECT_EQ(refusal(filter_tensors()), "");
  std::vector<TestTensor> tensors = filter_tensors();
  tensors.pop_back();
  EXPECT_NE(refusal(tensors).find("a draft filter has a tensor \"2.bias\""), std::string::npos);
  tensors = filter_tensors();
  tensors[0] = {"0.weight", "F32", {3, 2}, bytes_of({0, 1, 0, 0, 0, 1})};
  EXPECT_NE(refusal(tensors).find("\"0.weight\" is F32 of shape [3, 2]"), std::string::npos);
  tensors = filter_tensors();
  tensors[3] = {"2.bias", "F32", {1}, bytes_of({NAN})};
  EXPECT_NE(refusal(tensors).find("no numbers"), std::string::npos);
  EXPECT_FALSE(DraftFilter::load("/no/such/filter").has_value());
}

// One that believes in nothing keeps the engine from verifying what a drafter proposes, and one
// that believes in all lets it; neither changes the output.
TEST(DraftFilter, DecidesWhatIsVerified) {
  for (float bias : {-9.f, 9.f}) {
    TemporaryFolder folder;
    std::vector<TestTensor> tensors = filter_tensors();
    tensors[2] = {"2.weight", "F32", {1, 2}, bytes_of({0, 0})};
    tensors[3] = {"2.bias", "F32", {1}, bytes_of({bias})};
    EngineConfig config{.model_path = source_path("tests/golden/models/qwen3-tied"),
                        .load_format = "dummy",
                        .threads = 1,
                        .page_size_tokens = 4,
                        .total_tokens_max = 512,
                        .drafters = {"suffix"},
                        .measure_drafts = false};
    GenerateRequest request{.prompt = {5, 9, 77, 5, 30, 0, 42, 42},
                            .sampling = {.temperature = 0},
                            .options = {.max_new_tokens = 100}};
    auto plain = load_engine(config);
    config.draft_filter_path = folder.write("filter.safetensors", safetensors_file(tensors));
    auto filtered = load_engine(config);
    EXPECT_EQ(run_alone(*filtered, request).output_ids(), run_alone(*plain, request).output_ids());
    EXPECT_GT(plain->stats().draft_tokens, 0);
    EXPECT_EQ(filtered->stats().draft_tokens > 0, bias > 0);
  }
}

}  // namespace
}  // namespace banyan::test::draft_filter_test
