// The layers that predict a further token against their formula (tools/make_prediction_goldens.py),
// and EAGLE-3 heads (tools/make_eagle3_goldens.py): pairs of hidden state and next token over a
// prompt, then one of their own output.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/check.h"
#include "base/file.h"
#include "support/drive.h"
#include "support/models/checkpoint_copy.h"
#include "support/models/eagle3_head.h"
#include "support/models/grown_checkpoint.h"
#include "support/value_or_abort.h"
#include "weights/files/safetensors.h"

namespace banyan::test::prediction_test {
namespace {

constexpr double kLogprobErrorMax = 1e-3;

// The golden checkpoint with the layer's tensors on top.
void save_with_layer(const std::string& name, const TemporaryFolder& folder) {
  CheckpointCopy copy(name);
  std::string recipe = source_path("tests/golden/prediction/" + name + ".txt");
  for (TestTensor& tensor : grow_tensors(value_or_abort(read_file(recipe)))) {
    copy.erase(tensor.name);
    copy.tensors.push_back(std::move(tensor));
  }
  copy.config["num_nextn_predict_layers"] = 1;
  copy.save(folder);
}

template <class T>
std::vector<T> read_tensor(const SafetensorsFile& file, std::string_view name) {
  auto tensors = file.tensors();
  auto tensor = std::ranges::find(tensors, name, &TensorInfo::name);
  CHECK(tensor != tensors.end(), "{}", name);
  std::vector<T> values(tensor->bytes.size() / sizeof(T));
  std::memcpy(values.data(), tensor->bytes.data(), tensor->bytes.size());
  return values;
}

EngineConfig config_of(const std::string& model, const char* drafter) {
  return {.model_path = model,
          .threads = 1,
          .page_size_tokens = 16,
          .total_tokens_max = 64,
          .chunked_prefill_tokens = 64,
          .drafters = {drafter}};
}

class Prediction : public testing::TestWithParam<const char*> {
 protected:
  // Compares what the layer that `config` loads computes with the reference.
  void check(const EngineConfig& config, const std::string& reference);

  // Log-probabilities of all tokens after the layer's last kept output; returns the best one.
  TokenId compare(const std::vector<float>& reference) {
    auto vocabulary = static_cast<int32_t>(reference.size());
    DrawBatch draws;
    draws.rows.push_back({.temperature = 0, .top_count = vocabulary});
    draws.tops = vocabulary;
    const DrawResults& results = runner_->draw_predicted(std::vector{0}, draws);
    EXPECT_EQ(results.rows[0].top_count, vocabulary);
    for (const TokenLogprob& top : results.tops) {
      EXPECT_NEAR(top.logprob, reference[static_cast<size_t>(top.token)], kLogprobErrorMax)
          << top.token;
    }
    return results.rows[0].token;
  }

  std::unique_ptr<Runner> runner_;
};

void Prediction::check(const EngineConfig& config, const std::string& reference) {
  auto file = SafetensorsFile::open(source_path("tests/golden/" + reference));
  ASSERT_TRUE(file.has_value());
  auto ids = read_tensor<int64_t>(*file, "prompt_ids");
  std::vector<TokenId> prompt(ids.begin(), ids.end());
  auto rows = static_cast<int64_t>(prompt.size()) - 1;
  runner_ = load_runner(config);
  std::vector<int32_t> pages = {0, 1}, from(static_cast<size_t>(rows));
  runner_->run(one_span(runner_->classes(), prompt, 0, rows + 1, pages),
               [](int64_t, Tensor, const LogitStats&) {});

  std::vector<TokenId> next(prompt.begin() + 1, prompt.end());
  next.push_back(0);  // not known yet
  Batch batch = one_span(runner_->classes(), next, 0, rows, pages);
  batch.logit_rows = {static_cast<int32_t>(rows - 1)};
  std::iota(from.begin(), from.end(), 0);
  runner_->predict(batch, from, false);
  next.back() = compare(read_tensor<float>(*file, "first"));

  batch = one_span(runner_->classes(), next, rows, 1, pages);
  runner_->predict(batch, std::vector{0}, true);
  compare(read_tensor<float>(*file, "second"));
}

TEST_P(Prediction, AgreesWithItsFormulaAndGoesOnFromItsOwnOutput) {
  std::string name = GetParam();
  TemporaryFolder folder;
  save_with_layer(name, folder);
  check(config_of(folder.path(), "mtp"), "prediction/" + name + ".reference.safetensors");
}

class Eagle3 : public Prediction {};

TEST_P(Eagle3, AgreesWithItsFormulaAndGoesOnFromItsOwnOutput) {
  std::string name = GetParam();
  TemporaryFolder folder;
  save_golden_head(name, folder);
  EngineConfig config = config_of(golden_folder("qwen3-moe"), "eagle3");
  config.draft_model_path = folder.path();
  check(config, "eagle3/" + name + ".reference.safetensors");
}

std::string test_name(const testing::TestParamInfo<const char*>& info) {
  std::string name = info.param;
  std::ranges::replace(name, '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Families, Prediction,
                         testing::Values("deepseek-v3", "glm4-moe-lite", "glm4-moe",
                                         "longcat-flash", "ling3-tiny", "qwen3-next", "qwen3-5"),
                         test_name);
INSTANTIATE_TEST_SUITE_P(Heads, Eagle3, testing::Values("eagle3", "eagle3-speculator"), test_name);

}  // namespace
}  // namespace banyan::test::prediction_test
