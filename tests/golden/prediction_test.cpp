// The layers that predict a further token against their formula (tools/make_prediction_goldens.py):
// pairs of hidden state and next token over a prompt, then one of their own output.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/check.h"
#include "base/file.h"
#include "support/drive.h"
#include "support/models/checkpoint_copy.h"
#include "support/models/grown_checkpoint.h"
#include "support/value_or_abort.h"
#include "weights/files/safetensors.h"

namespace banyan::test {
namespace {

constexpr double kLogprobErrorMax = 1e-3;

std::string recipe_folder() {
  return source_path("tests/golden/prediction/");
}

// The golden checkpoint with the layer's tensors on top.
void save_with_layer(const std::string& name, const TemporaryFolder& folder) {
  CheckpointCopy copy(name);
  for (TestTensor& tensor :
       grow_tensors(value_or_abort(read_file(recipe_folder() + name + ".txt")))) {
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

class Prediction : public testing::TestWithParam<const char*> {
 protected:
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

TEST_P(Prediction, AgreesWithItsFormulaAndGoesOnFromItsOwnOutput) {
  std::string name = GetParam();
  TemporaryFolder folder;
  save_with_layer(name, folder);
  auto file = SafetensorsFile::open(recipe_folder() + name + ".reference.safetensors");
  ASSERT_TRUE(file.has_value());
  auto ids = read_tensor<int64_t>(*file, "prompt_ids");
  std::vector<TokenId> prompt(ids.begin(), ids.end());
  auto rows = static_cast<int64_t>(prompt.size()) - 1;
  runner_ = load_runner({.model_path = folder.path(),
                         .threads = 1,
                         .page_size_tokens = 16,
                         .total_tokens_max = 64,
                         .chunked_prefill_tokens = 64,
                         .drafters = {"mtp"}});
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

INSTANTIATE_TEST_SUITE_P(Families, Prediction,
                         testing::Values("deepseek-v3", "glm4-moe-lite", "glm4-moe",
                                         "longcat-flash", "ling3-tiny", "qwen3-next", "qwen3-5"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace banyan::test
