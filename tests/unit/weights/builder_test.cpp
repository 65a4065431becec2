// Declaring weights over small checkpoints: stacking, conversion, counting and errors.
#include "weights/builder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>

#include "base/error.h"
#include "kernels/kernel_table.h"
#include "kernels/select.h"

namespace banyan::builder_test {
namespace {

// Tensors in memory; reading can be made to fail.
class MemorySource final : public WeightSource {
 public:
  void add(const std::string& name, std::vector<int64_t> shape, const std::vector<float>& values) {
    std::vector<std::byte>& bytes = bytes_[name];
    bytes.resize(values.size() * sizeof(float));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    infos_[name] = {name, DType::kF32, std::move(shape), bytes};
  }
  TensorInfo& info(const std::string& name) { return infos_.at(name); }

  const TensorInfo* find(std::string_view name) const override {
    auto it = infos_.find(std::string(name));
    return it == infos_.end() ? nullptr : &it->second;
  }
  std::vector<const TensorInfo*> tensors() const override {
    std::vector<const TensorInfo*> all;
    for (const auto& [name, info] : infos_) all.push_back(&info);
    return all;
  }
  Status read(const TensorInfo& tensor, size_t offset, std::span<std::byte> to) const override {
    if (tensor.name == broken) return io_error("{}: the disk is gone", tensor.name);
    std::ranges::copy(tensor.bytes.subspan(offset, to.size()), to.begin());
    return {};
  }

  std::string broken;

 private:
  std::map<std::string, std::vector<std::byte>> bytes_;
  std::map<std::string, TensorInfo> infos_;
};

std::vector<float> iota(size_t count, float first) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = first + static_cast<float>(i);
  return values;
}

class BuilderTest : public testing::Test {
 protected:
  BuilderTest() {
    source_.add("a.x.weight", {2, 3}, iota(6, 0));
    source_.add("a.y.weight", {1, 3}, iota(3, 10));
    source_.add("a.x.bias", {2}, iota(2, 20));
    source_.add("a.y.bias", {1}, iota(1, 30));
    source_.add("a.norm.weight", {3}, iota(3, 40));
  }

  std::unique_ptr<WeightLoader> loader(LoadOptions options = {}) {
    options.source = &source_;
    options.kernels = *select_kernels("portable");
    options.threads = &threads_;
    return std::make_unique<WeightLoader>(options);
  }

  static void declare_all(Builder b) {
    (b / "a").stacked({{"x", 2}, {"y", 1}}, 3);
    (b / "a").vector({{"x", 2}, {"y", 1}}, "bias", 0);
    (b / "a" / "norm").vector({{"", 3}}, "weight", 1);
  }

  std::string problems(LoadOptions options, void (*declare)(Builder)) {
    auto load = loader(std::move(options));
    declare(Builder(*load));
    Status status = load->finish();
    return status ? "" : status.error().message;
  }

  MemorySource source_;
  ThreadPool threads_{2};
};

TEST_F(BuilderTest, StacksPartsAndConvertsThem) {
  auto load = loader();
  Builder b = Builder(*load) / "a";
  PackedMatrix matrix = b.stacked({{"x", 2}, {"y", 1}}, 3).at(0);
  Tensor bias = b.vector({{"x", 2}, {"y", 1}}, "bias", 0);
  (b / "norm").vector({{"", 3}}, "weight", 1);
  ASSERT_TRUE(load->finish().has_value());

  ASSERT_EQ(matrix.rows, 3);
  EXPECT_EQ(matrix.format->name, "f32");
  std::vector<int32_t> ids = {2, 0, 1};
  std::vector<float> rows(9);
  (*select_kernels("portable"))
      ->gemm_f32.gather(
          {.weight = matrix.data, .ids = ids.data(), .y = rows.data(), .rows = 3, .n = 3, .k = 3});
  EXPECT_EQ(rows, (std::vector<float>{10, 11, 12, 0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(std::vector<float>(bias.f32(), bias.f32() + 3), (std::vector<float>{20, 21, 30}));
}

TEST_F(BuilderTest, CountsWhatItLoads) {
  for (bool dry : {false, true}) {
    auto load = loader({.dry = dry});
    declare_all(Builder(*load));
    ASSERT_TRUE(load->finish().has_value());
    EXPECT_EQ(load->counts().tensors, 5);
    EXPECT_EQ(load->counts().parameters_total, 9 + 3 + 3);
    EXPECT_EQ(load->counts().parameters_active, 15);
    EXPECT_EQ(load->counts().weight_bytes, load->counts().weight_bytes_streamed);
  }
  auto load = loader();
  (Builder(*load) / "a").matrix({"x", 2}, 3, MatrixUse::kLookUp);
  EXPECT_EQ(load->counts().parameters_total, 6);
  EXPECT_EQ(load->counts().parameters_active, 0);
  EXPECT_EQ(load->counts().weight_bytes_streamed, 0);
}

TEST_F(BuilderTest, ReportsProgressUpToTheTotal) {
  std::vector<std::pair<int64_t, int64_t>> reports;
  auto load =
      loader({.progress = [&](int64_t done, int64_t total) { reports.emplace_back(done, total); }});
  declare_all(Builder(*load));
  ASSERT_TRUE(load->finish().has_value());
  EXPECT_TRUE(std::ranges::is_sorted(reports));
  EXPECT_EQ(reports.back(), (std::pair<int64_t, int64_t>{60, 60}));
}

TEST_F(BuilderTest, NamesWhatDoesNotFit) {
  EXPECT_EQ(problems({}, declare_all), "");
  EXPECT_EQ(problems({}, [](Builder b) { (b / "a").stacked({{"x", 2}, {"y", 1}}, 3); }),
            "the checkpoint does not match its config.json: "
            "a.norm.weight [3] is not used by this architecture; "
            "a.x.bias [2] is not used by this architecture; "
            "a.y.bias [1] is not used by this architecture");
  auto twice = [](Builder b) {
    declare_all(b);
    (b / "a").vector({{"x", 2}}, "bias", 0);
  };
  EXPECT_EQ(problems({}, twice),
            "the checkpoint does not match its config.json: a.x.bias is used "
            "twice");
  source_.info("a.y.weight").shape = {3, 1};
  source_.info("a.x.bias").dtype = DType::kI64;
  EXPECT_EQ(
      problems({.dry = true}, declare_all),
      "the checkpoint does not match its config.json: a.y.weight has shape [3, 1] where [1, 3] "
      "is expected; a.x.bias has dtype I64 where F32, BF16 or F16 is expected");
}

TEST_F(BuilderTest, ShowsTheFirstOfManyProblems) {
  std::string message = problems({}, [](Builder b) {
    declare_all(b);
    for (int64_t i = 0; i < 100; ++i) (b / "layers" / i).matrix({"w", 4}, 4);
  });
  EXPECT_NE(message.find("layers.0.w.weight [4, 4] is missing"), std::string::npos) << message;
  EXPECT_NE(message.find("and 92 more"), std::string::npos) << message;
}

TEST_F(BuilderTest, MayIgnoreATensor) {
  source_.add("a.rotary_emb.inv_freq", {4}, iota(4, 0));
  EXPECT_NE(problems({}, declare_all).find("a.rotary_emb.inv_freq"), std::string::npos);
  EXPECT_EQ(problems({},
                     [](Builder b) {
                       declare_all(b);
                       (b / "a" / "rotary_emb").ignore("inv_freq");
                       (b / "a" / "rotary_emb").ignore("not there");
                     }),
            "");
}

TEST_F(BuilderTest, MayIgnoreAScope) {
  source_.add("b.1.x.weight", {4}, iota(4, 0));
  source_.add("b.1.y", {4}, iota(4, 0));
  source_.add("b.10.x", {4}, iota(4, 0));
  auto declare = [](Builder b) {
    declare_all(b);
    (b / "b" / 1).ignore_scope();
  };
  EXPECT_EQ(problems({}, declare),
            "the checkpoint does not match its config.json: "
            "b.10.x [4] is not used by this architecture");
}

TEST_F(BuilderTest, ReadsValuesWhoseOnesDoNotCount) {
  source_.add("a.rate", {1, 1, 4, 1}, iota(4, 5));
  source_.add("a.conv.weight", {2, 1, 3}, iota(6, 0));
  auto load = loader();
  Builder b = Builder(*load);
  declare_all(b);
  Tensor rate = (b / "a").values("rate", {4}, 0);
  Tensor conv = (b / "a" / "conv").values("weight", {2, 3}, 0);
  ASSERT_TRUE(load->finish().has_value());
  EXPECT_EQ(std::vector<float>(rate.f32(), rate.f32() + 4), iota(4, 5));
  EXPECT_EQ(conv.dim(1), 3);
  EXPECT_EQ(std::vector<float>(conv.f32(), conv.f32() + 6), iota(6, 0));
  EXPECT_EQ(load->counts().parameters_total, 15 + 4 + 6);
  source_.info("a.rate").shape = {2, 2};
  auto declare = [](Builder b) {
    declare_all(b);
    (b / "a").values("rate", {4}, 0);
    (b / "a" / "conv").values("weight", {2, 3}, 0);
  };
  EXPECT_EQ(problems({}, declare),
            "the checkpoint does not match its config.json: "
            "a.rate has shape [2, 2] where [4] is expected");
}

TEST_F(BuilderTest, PassesOnReadErrors) {
  for (const char* name : {"a.y.weight", "a.x.bias"}) {
    source_.broken = name;
    EXPECT_NE(problems({}, declare_all).find(std::string(name) + ": the disk is gone"),
              std::string::npos);
    EXPECT_EQ(problems({.dry = true}, declare_all), "") << "nothing is read";
  }
}

TEST_F(BuilderTest, KnowsWhatTheCheckpointHas) {
  auto load = loader();
  EXPECT_TRUE((Builder(*load) / "a" / "x").has("bias"));
  EXPECT_FALSE((Builder(*load) / "a" / "z").has("bias"));
}

TEST(BuilderConstant, LiesAmongTheWeightsAndIsCounted) {
  ThreadPool threads(1);
  const std::vector<float> values = {3, 1, 4, 1, 5, 9};
  for (bool dry : {true, false}) {
    WeightLoader loader({.kernels = *select_kernels("portable"), .threads = &threads, .dry = dry});
    Tensor constant = Builder(loader).constant({2, 3}, values);
    EXPECT_EQ(constant.dim(0), 2);
    EXPECT_EQ(constant.dim(1), 3);
    EXPECT_EQ(loader.counts().weight_bytes, 24);
    EXPECT_EQ(loader.counts().weight_bytes_streamed, 24);
    EXPECT_EQ(loader.counts().parameters_total, 0);
    EXPECT_EQ(constant.data() == nullptr, dry);
    if (dry) continue;
    EXPECT_NE(constant.data(), values.data());
    EXPECT_TRUE(std::equal(values.begin(), values.end(), constant.f32()));
  }
}

TEST(BuilderConstant, MayFollowFromValuesOfTheCheckpoint) {
  ThreadPool threads(1);
  WeightLoader loader({.kernels = *select_kernels("portable"), .threads = &threads});
  std::vector<float> values = Builder(loader).host_values("scale", {4, 1}, 1);
  ASSERT_EQ(values.size(), 4u);
  EXPECT_EQ(loader.counts().parameters_total, 4);
  EXPECT_EQ(loader.counts().weight_bytes, 0) << "only what is derived stays in memory";
}

TEST(WeightStoreTest, WeightsLieSideBySide) {
  WeightStore store;
  std::vector<std::pair<std::byte*, size_t>> places;
  for (size_t bytes : {1, 100, 64, 70'000, 5'000'000, 3, 200'000}) {
    std::byte* place = store.allocate(bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(place) % 64, 0u);
    EXPECT_TRUE(std::all_of(place, place + bytes, [](std::byte b) { return b == std::byte{0}; }));
    std::fill_n(place, bytes, static_cast<std::byte>(places.size() + 1));
    places.emplace_back(place, bytes);
  }
  EXPECT_EQ(places[1].first - places[0].first, 64);
  for (size_t i = 0; i < places.size(); ++i) {
    auto [place, bytes] = places[i];
    auto own = static_cast<std::byte>(i + 1);
    EXPECT_TRUE(std::all_of(place, place + bytes, [&](std::byte b) { return b == own; })) << i;
  }
}

// A matrix of random weights with 96 columns, as f32.
std::vector<float> random_rows(const char* quantization, std::initializer_list<MatrixPart> parts) {
  constexpr int64_t kColumns = 96;
  ThreadPool threads(3);
  const KernelTable* kernels = *select_kernels("portable");
  QuantizationPlan plan = QuantizationPlan::create(quantization, {}).value();
  WeightLoader loader(
      {.kernels = kernels, .threads = &threads, .dtype = DType::kF32, .plan = &plan});
  PackedMatrix matrix = (Builder(loader) / "m").stacked(parts, kColumns).at(0);
  std::vector<int32_t> ids(static_cast<size_t>(matrix.rows));
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(i);
  std::vector<float> values(ids.size() * kColumns);
  (kernels->*matrix.format->kernel)
      .gather({.weight = matrix.data,
               .ids = ids.data(),
               .y = values.data(),
               .rows = matrix.rows,
               .n = matrix.rows,
               .k = kColumns,
               .group = matrix.group});
  return values;
}

constexpr const char* kRandomFormats[] = {"none", "int8", "int4", "mxfp4", "fp8"};

// A random value depends on its tensor's name and its index, not on how parts are stacked.
TEST(BuilderDummy, RandomWeightsDoNotDependOnFusion) {
  for (const char* format : kRandomFormats) {
    std::vector<float> fused = random_rows(format, {{"q", 40}, {"k", 7}});
    std::vector<float> q = random_rows(format, {{"q", 40}}), k = random_rows(format, {{"k", 7}});
    q.insert(q.end(), k.begin(), k.end());
    EXPECT_EQ(fused, q) << format;
    EXPECT_NE(random_rows(format, {{"k", 40}}), random_rows(format, {{"q", 40}})) << format;
  }
}

// The packed bytes of random weights on a device whose memory the host cannot read.
std::vector<std::byte> packed_bytes(const char* quantization, int64_t columns,
                                    std::initializer_list<MatrixPart> parts) {
  ThreadPool threads(3);
  const KernelTable* kernels = *select_kernels("cuda_emulated");
  DeviceQueue queue(*kernels->device);
  QuantizationPlan plan = QuantizationPlan::create(quantization, {}).value();
  WeightLoader loader({.kernels = kernels, .queue = &queue, .threads = &threads, .plan = &plan});
  PackedMatrix matrix = (Builder(loader) / "m").stacked(parts, columns).at(0);
  EXPECT_TRUE(loader.finish().has_value());
  HostView view(queue, matrix.data, matrix.bytes);
  queue.synchronise();
  return {view.as<std::byte>(), view.as<std::byte>() + matrix.bytes};
}

// Matrices that do not fit the buffer of uploads are packed and sent in pieces of whole blocks.
TEST(BuilderDummy, LongMatricesArriveInPieces) {
  constexpr int64_t kColumns = 4096, kFew = 64, kMany = 9000;  // 74 MB of bf16, 37 of int8
  for (const char* format : {"none", "int8"}) {
    std::vector<std::byte> all = packed_bytes(format, kColumns, {{"q", kFew}, {"k", kMany}});
    std::vector<std::byte> few = packed_bytes(format, kColumns, {{"q", kFew}});
    std::vector<std::byte> part = packed_bytes(format, kColumns, {{"k", kMany}});
    size_t packed = (kFew + kMany) / kFew * few.size();  // the last block is not full
    few.insert(few.end(), part.begin(), part.end());
    ASSERT_EQ(all.size(), few.size());
    all.resize(packed);
    few.resize(packed);
    EXPECT_TRUE(all == few) << format;
  }
}

// Random codes are never quantised numbers, yet are as large as those would be.
TEST(BuilderDummy, RandomWeightsOfEveryFormatAreOfOneSize) {
  for (const char* format : kRandomFormats) {
    std::vector<float> values = random_rows(format, {{"q", 500}});
    auto count = static_cast<double>(values.size());
    double sum = 0, square = 0;
    for (float value : values) {
      sum += value;
      square += double{value} * value;
    }
    EXPECT_NEAR(sum / count, 0, 3e-4) << format;
    EXPECT_NEAR(std::sqrt(square / count), 0.02, 0.004) << format;
  }
}

}  // namespace
}  // namespace banyan::builder_test
