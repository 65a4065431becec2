// LoRA adapters against what PEFT computes (tools/make_adapter_goldens.py). Errors are the largest
// absolute difference over the reference's largest absolute value.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "support/drive.h"
#include "support/models/adapters.h"
#include "support/models/grown_checkpoint.h"
#include "support/shared.h"
#include "support/value_or_abort.h"
#include "weights/files/safetensors.h"

namespace banyan::test::adapters_test {
namespace {

constexpr double kErrorMaxF32 = 1e-4;

template <class T>
std::vector<T> read_tensor(const SafetensorsFile& file, std::string_view name) {
  const TensorInfo* tensor = file.find(name);
  CHECK(tensor != nullptr, "{}", name);
  std::vector<T> values(tensor->bytes.size() / sizeof(T));
  std::memcpy(values.data(), tensor->bytes.data(), tensor->bytes.size());
  return values;
}

double error_of(std::span<const float> ours, std::span<const float> reference) {
  if (ours.size() != reference.size()) return INFINITY;
  double most = 0, largest = 0;
  for (size_t i = 0; i < ours.size(); ++i) {
    double difference = std::abs(static_cast<double>(ours[i]) - reference[i]);
    most = difference <= most ? most : std::isnan(difference) ? INFINITY : difference;
    largest = std::max(largest, std::abs(static_cast<double>(reference[i])));
  }
  return most / largest;
}

class GoldenAdapters : public testing::TestWithParam<const char*> {
 protected:
  GoldenAdapters() {
    for (int64_t id : read_tensor<int64_t>(reference_, "prompt_ids")) {
      prompt_.push_back(static_cast<TokenId>(id));
    }
  }

  EngineConfig config_of(const std::string& kernels) const {
    return {.model_path = golden_folder(GetParam()),
            .dtype = "f32",
            .kernels = kernels,
            .threads = 1,
            .adapters_max = 2,
            .adapter_rank_max = 7,
            .page_size_tokens = 16,
            .total_tokens_max = 64,
            .running_max = 2,
            .chunked_prefill_tokens = 64};
  }

  SafetensorsFile reference_ = value_or_abort(SafetensorsFile::open(
      source_path(std::string("tests/golden/adapters/") + GetParam() + ".reference.safetensors")));
  std::vector<TokenId> prompt_;
  TemporaryFolder folder_;
  std::string adapter_ = TestAdapter(GetParam()).save(folder_);
};

TEST_P(GoldenAdapters, F32MatchesPeft) {
  std::vector<int32_t> pages(4);
  std::iota(pages.begin(), pages.end(), 0);
  for (const std::string& kernels : all_kernels()) {
    SCOPED_TRACE(kernels);
    std::unique_ptr<Runner> runner = load_runner(config_of(kernels));
    auto packed = value_or_abort(runner->pack_adapter({"golden", adapter_}));
    runner->put_adapter(1, *packed);
    auto rows = static_cast<int64_t>(prompt_.size());
    Batch batch = one_span(runner->classes(), prompt_, 0, rows, pages);
    std::vector<float> plain = runner->run_hidden(batch, {}).final;
    batch.adapters = {1};
    std::vector<float> adapted = runner->run_hidden(batch, {}).final;
    std::vector<float> expected = read_tensor<float>(reference_, "final");
    EXPECT_LE(error_of(adapted, expected), kErrorMaxF32);
    EXPECT_GT(error_of(plain, expected), 0.1) << "the adapter changes little";
    std::vector<float> logits;
    runner->run(batch, [&](int64_t, Tensor block, const LogitStats&) {
      logits.insert(logits.end(), block.f32(), block.f32() + block.count());
    });
    EXPECT_LE(error_of(logits, read_tensor<float>(reference_, "logits")), kErrorMaxF32);
  }
}

// A slot's matrices are padded to the largest rank. Neither that rank nor other loaded adapters
// change a bit.
TEST_P(GoldenAdapters, HaveTheSameBitsInAnySlotAndRoom) {
  for (const std::string& kernels : all_kernels()) {
    SCOPED_TRACE(kernels);
    EngineConfig config = config_of(kernels);
    config.dtype = "bf16";
    std::vector<std::vector<float>> all;
    for (int rank : {5, 16}) {
      config.adapter_rank_max = rank;
      std::unique_ptr<Runner> runner = load_runner(config);
      for (int slot : {0, 1}) {
        auto packed = value_or_abort(runner->pack_adapter({"golden", adapter_}));
        runner->put_adapter(slot, *packed);
        std::vector<int32_t> pages(4);
        std::iota(pages.begin(), pages.end(), 0);
        Batch batch = one_span(runner->classes(), prompt_, 0, std::ssize(prompt_), pages);
        batch.adapters = {slot};
        all.push_back(runner->run_hidden(batch, {}).final);
        EXPECT_TRUE(same_bits(all.back(), all.front())) << rank << ' ' << slot;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, GoldenAdapters,
                         testing::Values("qwen3-tied", "phi3", "glm4-moe-lite", "qwen3-next"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace banyan::test::adapters_test
