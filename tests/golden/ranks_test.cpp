// Every family divided among 2, 3 and 4 ranks: their parts make up the whole model, and they
// compute what one rank computes, bit for bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <thread>

#include "base/file.h"
#include "base/json.h"
#include "dist/comm_threads.h"
#include "kernels/select.h"
#include "support/drive.h"
#include "support/golden.h"
#include "support/shared.h"
#include "support/value_or_abort.h"

namespace banyan::test::ranks_test {
namespace {

constexpr int kRankCounts[] = {2, 3, 4};
constexpr double kErrorMax = 1e-4;  // sums of parts in another order

EngineConfig config_of(const std::string& folder, const std::string& dtype,
                       const std::string& quantization = "none") {
  return {.model_path = folder,
          .dtype = dtype,
          .threads = 1,
          .quantization = quantization,
          .page_size_tokens = 16,
          .total_tokens_max = 256,
          .running_max = 2,
          .chunked_prefill_tokens = 256};
}

using Runners = std::vector<std::unique_ptr<Runner>>;

Result<Runners> load_ranks(const EngineConfig& config, ThreadRanks& ranks, int count) {
  std::vector<Result<std::unique_ptr<Runner>>> loaded(static_cast<size_t>(count));
  {
    std::vector<std::jthread> threads;
    for (int index = 0; index < count; ++index) {
      threads.emplace_back([&, index] {
        loaded[static_cast<size_t>(index)] =
            Runner::load(config, {}, registered_families(), ranks.of(index));
      });
    }
  }
  Runners runners;
  for (auto& runner : loaded) {
    EXPECT_EQ(runner.has_value(), loaded[0].has_value());  // all or none
    if (!runner) return std::unexpected(runner.error());
    runners.push_back(*std::move(runner));
  }
  return runners;
}

// A matrix as one rank has it, and which of its elements others have.
struct Whole {
  int64_t columns = 0;
  std::vector<float> elements;
  std::vector<bool> seen;
  std::string form;
};
using Matrices = std::map<std::string, Whole>;

std::vector<float> rows_of(const PackedMatrix& matrix, const KernelTable& kernels) {
  ThreadPool threads(1);
  std::vector<int32_t> ids(static_cast<size_t>(matrix.rows));
  std::iota(ids.begin(), ids.end(), 0);
  std::vector<float> rows(static_cast<size_t>(matrix.rows * matrix.columns));
  (kernels.*matrix.format->kernel)
      .gather({.launch = {.threads = &threads},
               .weight = matrix.data,
               .ids = ids.data(),
               .y = rows.data(),
               .rows = matrix.rows,
               .n = matrix.rows,
               .k = matrix.columns,
               .group = matrix.group});
  return rows;
}

// Calls see(part, row, column, element) for all that a runner has, in the numbers of the whole.
void for_each_element(const Runner& runner, const auto& see) {
  const KernelTable& kernels = *value_or_abort(select_kernels(runner.info().kernels));
  for (const MatrixRecord& record : runner.matrices()) {
    std::vector<float> rows = rows_of(record.matrix, kernels);
    const float* next = rows.data();
    for (const MatrixRecord::Part& part : record.parts) {
      for (int64_t r = 0; r < part.rows; ++r) {
        for (int64_t c = 0; c < record.matrix.columns; ++c) {
          see(record, part, part.first_row + r, record.column_begin + c, *next++);
        }
      }
    }
  }
}

Matrices matrices_of(const Runner& runner) {
  Matrices all;
  for_each_element(runner, [&](const MatrixRecord& record, const MatrixRecord::Part& part,
                               int64_t row, int64_t column, float element) {
    Whole& whole = all[part.name];
    whole.columns = record.matrix.columns;
    whole.form = record.matrix.format->name;
    // Not in order where runs of rows are taken block by block.
    auto at = static_cast<size_t>(row * whole.columns + column);
    if (whole.elements.size() <= at) whole.elements.resize(at + 1);
    whole.elements[at] = element;
  });
  for (auto& [name, whole] : all) whole.seen.resize(whole.elements.size());
  return all;
}

// The elements of a runner's matrices.
int64_t elements_of(const Runner& runner) {
  int64_t count = 0;
  for (const MatrixRecord& record : runner.matrices()) {
    count += record.matrix.rows * record.matrix.columns;
  }
  return count;
}

// The most that one of them has.
int64_t elements_of(const Runners& runners) {
  int64_t most = 0;
  for (const auto& runner : runners) most = std::max(most, elements_of(*runner));
  return most;
}

void expect_parts_make_the_whole(const EngineConfig& config, const Runners& runners) {
  Matrices expected = matrices_of(*load_runner(config));
  std::string wrong;  // the last
  for (const auto& runner : runners) {
    for_each_element(*runner, [&](const MatrixRecord& record, const MatrixRecord::Part& part,
                                  int64_t row, int64_t column, float element) {
      Whole& whole = expected.at(part.name);
      auto at = static_cast<size_t>(row * whole.columns + column);
      bool right = same_bits({&whole.elements.at(at), 1}, {&element, 1});
      if (!right || record.matrix.format->name != whole.form) {
        wrong = fmt::format("{} [{}, {}]", part.name, row, column);
      }
      whole.seen[at] = true;
    });
  }
  EXPECT_EQ(wrong, "");
  for (const auto& [name, whole] : expected) {
    EXPECT_TRUE(std::ranges::all_of(whole.seen, [](bool seen) { return seen; })) << name;
  }
}

double error_of(std::span<const float> ours, std::span<const float> reference) {
  double most = 0, largest = 0;
  for (size_t i = 0; i < reference.size(); ++i) {
    double difference = std::abs(static_cast<double>(ours[i]) - reference[i]);
    most = difference <= most ? most : std::isnan(difference) ? INFINITY : difference;
    largest = std::max(largest, std::abs(static_cast<double>(reference[i])));
  }
  return most / largest;
}

// The logits of all positions, of every rank.
std::vector<std::vector<float>> run_ranks(const Runners& runners,
                                          const std::vector<TokenId>& tokens) {
  std::vector<std::vector<float>> logits(runners.size());
  std::vector<std::jthread> threads;
  for (size_t r = 0; r < runners.size(); ++r) {
    threads.emplace_back([&, r] { logits[r] = all_logits(*runners[r], tokens, 16); });
  }
  threads.clear();  // joins
  return logits;
}

// The heads that ranks divide among themselves, where layers have fewest.
int64_t heads_of(const std::string& folder) {
  Json config = *parse_json(*read_file(folder + "/config.json"), "config.json");
  int64_t heads = config["num_attention_heads"];
  if (config.contains("linear_attn_config")) {
    heads = std::min(heads, config["linear_attn_config"]["num_heads"].get<int64_t>());
  }
  for (const char* key : {"linear_num_heads", "linear_num_key_heads", "mamba_n_groups", "n_groups",
                          "num_global_key_value_heads"}) {
    heads = std::min(heads, config.value(key, heads));
  }
  if (config.contains("kv_lora_rank")) return heads;
  bool mistral = config["architectures"][0] == "MistralForCausalLM";
  return std::min(heads, config.value("num_key_value_heads", mistral ? int64_t{8} : heads));
}

class Ranks : public testing::TestWithParam<GoldenCase> {};

TEST_P(Ranks, LoadTheWholeTogetherAndComputeWhatOneDoes) {
  std::string folder = GetParam().folder();
  EngineConfig config = config_of(folder, "f32");
  std::vector<TokenId> prompt = GoldenReference(GetParam()).ids("prompt_ids");
  std::unique_ptr<Runner> one = load_runner(config);
  std::vector<float> expected = all_logits(*one, prompt, 16);
  for (int count : kRankCounts) {
    SCOPED_TRACE(fmt::format("{} ranks", count));
    ThreadRanks ranks(count);
    Result<Runners> runners = load_ranks(config, ranks, count);
    if (heads_of(folder) < count) {
      ASSERT_FALSE(runners.has_value());
      EXPECT_EQ(runners.error().code, ErrorCode::kUnsupported) << runners.error().message;
      std::string message = fmt::format("{} ranks cannot divide this model", count);
      EXPECT_TRUE(runners.error().message.starts_with(message)) << runners.error().message;
      continue;
    }
    ASSERT_TRUE(runners.has_value()) << runners.error().message;
    expect_parts_make_the_whole(config, *runners);
    EXPECT_LT(elements_of(*runners), elements_of(*one) * 9 / 10);
    for (const auto& runner : *runners) {  // info() describes the whole model
      EXPECT_EQ(runner->info().parameters_total, one->info().parameters_total);
      EXPECT_EQ(runner->info().weight_bytes, one->info().weight_bytes);
      EXPECT_EQ(runner->info().tp_size, count);
    }
    std::vector<std::vector<float>> logits = run_ranks(*runners, prompt);
    EXPECT_LE(error_of(logits[0], expected), kErrorMax);
    for (const std::vector<float>& other : logits) EXPECT_TRUE(same_bits(other, logits[0]));
  }
}

INSTANTIATE_TEST_SUITE_P(Families, Ranks, testing::ValuesIn(golden_cases()), [](const auto& info) {
  std::string name = info.param.name;
  std::ranges::replace(name, '-', '_');
  return name;
});

// Codes and scales are cut, too, whatever they are stored as or quantised to.
TEST(RanksOfQuantised, LoadTheWholeTogether) {
  for (const char* name :
       {"fp8-block-bf16-scales", "fp8-channel", "fp8-tensor", "w8a8", "w4a16", "w4a16-zero-points",
        "w4a16-act-order", "w8a16", "mxfp4", "nvfp4", "awq", "gptq", "gptq-act-order-v2"}) {
    SCOPED_TRACE(name);
    EngineConfig config =
        config_of(source_path(fmt::format("tests/golden/quantised/{}", name)), "auto");
    ThreadRanks ranks(2);
    Result<Runners> runners = load_ranks(config, ranks, 2);
    ASSERT_TRUE(runners.has_value()) << runners.error().message;
    expect_parts_make_the_whole(config, *runners);
  }
}

TEST(RanksOfQuantised, QuantiseWhatTheyReadAsOneDoes) {
  TemporaryFolder folder;
  folder.write("config.json", R"({
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu",
    "vocab_size": 96, "hidden_size": 128, "intermediate_size": 384, "num_hidden_layers": 1,
    "num_attention_heads": 8, "num_key_value_heads": 4, "max_position_embeddings": 256,
    "rms_norm_eps": 1e-5, "tie_word_embeddings": false, "torch_dtype": "bfloat16"})");
  for (const char* format : {"int8", "int4", "fp8", "mxfp4"}) {
    SCOPED_TRACE(format);
    EngineConfig config = config_of(folder.path(), "auto", format);
    config.load_format = "dummy";
    for (int count : {2, 4}) {
      ThreadRanks ranks(count);
      Result<Runners> runners = load_ranks(config, ranks, count);
      ASSERT_TRUE(runners.has_value()) << runners.error().message;
      expect_parts_make_the_whole(config, *runners);
    }
  }
}

}  // namespace
}  // namespace banyan::test::ranks_test
