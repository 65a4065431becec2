// Every golden checkpoint with a quantised KV cache: bit for bit against the same arithmetic over
// f32 pages of rounded values, and other tables within the effect of single roundings.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/startup/memory_plan.h"
#include "kernels/place_heads.h"
#include "kernels/portable/portable.h"
#include "kernels/state_rows.h"
#include "models/load.h"
#include "support/drive.h"
#include "support/golden.h"
#include "support/value_or_abort.h"

namespace banyan::test::quantised_cache_test {
namespace {

constexpr int kPages = 16, kPageTokens = 16;
constexpr const char* kCaches[] = {"int8", "fp8_e4m3"};

// The hidden states of all layers, and the final ones.
using States = std::vector<std::vector<float>>;

EngineConfig config_of(const GoldenCase& golden, const std::string& cache) {
  return {.model_path = golden.folder(),
          .dtype = "f32",
          .kernels = "portable",
          .threads = 1,
          .kv_cache_dtype = cache,
          .page_size_tokens = kPageTokens,
          .total_tokens_max = kPages * kPageTokens,
          .running_max = 2,
          .chunked_prefill_tokens = kPages * kPageTokens};
}

std::vector<int> layers_of(const GoldenCase& golden) {
  std::vector<int> layers(static_cast<size_t>(golden.layers) + 1);
  std::iota(layers.begin(), layers.end(), 0);
  return layers;
}

std::vector<int32_t> pages_in_order() {
  std::vector<int32_t> pages(kPages);
  std::iota(pages.begin(), pages.end(), 0);
  return pages;
}

// Rounds rows as a quantised pool of S would, and stores them as f32.
template <class S>
void write_rounded(const PageWriteArgs& a) {
  CHECK(a.pool_dtype == DType::kF32, "{}", dtype_name(a.pool_dtype));
  RowShape shape = {.width = a.width, .split = a.split};
  std::vector<S> row(static_cast<size_t>(shape.quantised_bytes()));
  int64_t rows = 0, row_floats = a.heads * a.width;
  for (const SpanArgs* s = a.spans; s < a.spans + a.span_count; ++s) {
    rows = std::max<int64_t>(rows, s->row_begin + s->row_count);
  }
  std::vector<float> rounded(static_cast<size_t>(rows * row_floats));
  for (int64_t i = 0; i < rows * a.heads; ++i) {
    store_row(a.x + i / a.heads * a.x_row_stride + i % a.heads * a.width, shape, row.data());
    RowValues<S> values(row.data(), shape);
    for (int64_t c = 0; c < a.width; ++c) rounded[static_cast<size_t>(i * a.width + c)] = values[c];
  }
  PageWriteArgs args = a;
  args.x = rounded.data();
  args.x_row_stride = row_floats;
  portable::page_write(args);
}

// One pass over the prompt, with a table that no configuration names.
States run_with(const KernelTable& kernels, const GoldenCase& golden, const std::string& cache,
                const std::vector<TokenId>& prompt) {
  EngineConfig config = config_of(golden, cache);
  ThreadPool threads(1);
  LoadedModel model =
      value_or_abort(load_model(config, {.kernels = &kernels, .threads = &threads}));
  UnitCounts units;
  units.fill(kPages);
  StatePools pools = value_or_abort(StatePools::create(model.states, kPageTokens, units));
  std::vector<int> layers = layers_of(golden);
  Batch batch = one_span(pools.classes(), prompt, 0, std::ssize(prompt), pages_in_order());
  Arena arena(measure_step_bytes(model, kernels, batch.rows(), layers));
  StepImage image(host_queue());
  Step step{.kernels = kernels,
            .launch = {.threads = &threads},
            .arena = arena,
            .pools = pools,
            .batch = batch,
            .inputs = image.load(batch),
            .auxiliary_layers = layers};
  Outputs outputs = model.model->forward(step);
  States states;
  for (int64_t i = 0; i < std::ssize(layers); ++i) {
    std::vector<float>& state = states.emplace_back();
    for (int64_t row = 0; row < batch.rows(); ++row) {
      int64_t width = outputs.hidden.dim(1);
      const float* x = outputs.auxiliary.rows(row, 1).columns(i * width, width).f32();
      state.insert(state.end(), x, x + width);
    }
  }
  states.emplace_back(outputs.hidden.f32(), outputs.hidden.f32() + outputs.hidden.count());
  return states;
}

States run(const EngineConfig& config, const GoldenCase& golden,
           const std::vector<TokenId>& prompt) {
  std::unique_ptr<Runner> runner = load_runner(config);
  Batch batch = one_span(runner->classes(), prompt, 0, std::ssize(prompt), pages_in_order());
  Runner::Hidden hidden = runner->run_hidden(batch, layers_of(golden));
  hidden.layers.push_back(hidden.final);
  return hidden.layers;
}

// The largest difference of any layer over the largest value there; infinite for what is no number.
double difference(const States& a, const States& b) {
  double most = 0;
  for (size_t layer = 0; layer < a.size(); ++layer) {
    double largest = 0, off = 0;
    for (size_t i = 0; i < a[layer].size(); ++i) {
      double d = std::fabs(double{a[layer][i]} - double{b[layer][i]});
      off = std::isnan(d) ? INFINITY : std::max(off, d);
      largest = std::max(largest, std::fabs(double{b[layer][i]}));
    }
    most = std::max(most, off / largest);
  }
  return most;
}

class QuantisedCache : public testing::TestWithParam<GoldenCase> {
 protected:
  void SetUp() override {
    auto info = inspect_model(config_of(GetParam(), "auto"));
    ASSERT_TRUE(info.has_value()) << info.error().message;
    if (info->kv_cache_dtype.empty()) GTEST_SKIP() << "keeps no keys and values";
    has_index_ = info->index_bytes_per_token > 0;  // an index of tokens or of blocks
    prompt_ = GoldenReference(GetParam()).ids("prompt_ids");
  }
  std::vector<TokenId> prompt_;
  bool has_index_ = false;
};

TEST_P(QuantisedCache, HasTheBitsOfRoundedRowsInF32) {
  if (has_index_) GTEST_SKIP() << "keys of an index are rounded by --index-dtype alone";
  KernelTable int8 = portable::table(), fp8 = portable::table();
  int8.page_write = write_rounded<int8_t>;
  fp8.page_write = write_rounded<Float8E4M3>;
  int8.place_heads = place_heads_by<portable::rms_norm, portable::rope, write_rounded<int8_t>>;
  fp8.place_heads = place_heads_by<portable::rms_norm, portable::rope, write_rounded<Float8E4M3>>;
  for (const std::string cache : kCaches) {
    States rounded = run_with(cache == "int8" ? int8 : fp8, GetParam(), "f32", prompt_);
    States kept = run_with(portable::table(), GetParam(), cache, prompt_);
    ASSERT_EQ(kept.size(), rounded.size());
    for (size_t layer = 0; layer < kept.size(); ++layer) {
      EXPECT_TRUE(same_bits(kept[layer], rounded[layer])) << cache << " layer " << layer;
    }
    States exact = run_with(portable::table(), GetParam(), "f32", prompt_);
    EXPECT_FALSE(same_bits(kept.back(), exact.back())) << cache << " rounds nothing";
  }
}

// A key that differs by an ULP may take the next code, which is a small part of what rounding does.
TEST_P(QuantisedCache, IsNearInEveryTableAndForm) {
  for (const std::string cache : kCaches) {
    EngineConfig config = config_of(GetParam(), "f32");
    States exact = run(config, GetParam(), prompt_);
    config.kv_cache_dtype = cache;
    States portable = run(config, GetParam(), prompt_);
    double rounding = difference(portable, exact);
    // Rounding may change what an index chooses.
    if (!has_index_) {
      EXPECT_LT(rounding, 1) << cache;
    }
    for (const std::string& kernels : all_kernels()) {
      config.kernels = kernels;
      double off = difference(run(config, GetParam(), prompt_), portable);
      EXPECT_LE(off, std::max(1e-5, rounding / 4)) << cache << " " << kernels;
    }
    config.kernels = "portable";
    config.mla_prefill = "expanded";
    if (!inspect_model(config)) continue;  // no latents
    double off = difference(run(config, GetParam(), prompt_), portable);
    EXPECT_LE(off, std::max(1e-4, rounding / 4)) << cache << ", expanded";
  }
}

std::string test_name(const testing::TestParamInfo<GoldenCase>& test) {
  std::string name = test.param.name;
  std::ranges::replace(name, '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, QuantisedCache, testing::ValuesIn(golden_cases()), test_name);

}  // namespace
}  // namespace banyan::test::quantised_cache_test
