// What one engine sends another of its states, and that the other makes the same of them.
#include "engine/tiers/export_units.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "support/drive.h"
#include "support/models/grown_checkpoint.h"
#include "support/value_or_abort.h"
#include "tier/record_reader.h"

namespace banyan::test::export_units_test {
namespace {

EngineConfig config_of(const char* model) {
  return {.model_path = golden_folder(model),
          .kernels = "portable",
          .threads = 1,
          .page_size_tokens = 16,
          .total_tokens_max = 512,
          .state_digest = true};
}

std::vector<TokenId> prompt(int64_t tokens) {
  std::vector<TokenId> ids;
  for (int64_t i = 0; i < tokens; ++i) ids.push_back(static_cast<TokenId>(i * 7 % 60));
  return ids;
}

std::unique_ptr<Engine> engine_with(const EngineConfig& config, int64_t tokens) {
  auto engine = value_or_abort(Engine::load(config));
  GenerateRequest request{.prompt = prompt(tokens)};
  request.options.max_new_tokens = 0;
  run_alone(*engine, request);
  return engine;
}

// The keys of the records in `bytes`, in order.
std::vector<TierKey> keys_in(const std::string& bytes) {
  std::vector<TierKey> keys;
  RecordReader reader({.place = [&](const TierKey& key) -> const RecordReader::Place* {
                         keys.push_back(key);
                         return nullptr;
                       },
                       .end = {}});
  EXPECT_TRUE(reader.feed(bytes));
  EXPECT_TRUE(reader.between_records());
  return keys;
}

TEST(ExportUnits, SendsWhatIsThereInTheOrderAskedFor) {
  auto engine = engine_with(config_of("qwen3-tied"), 65);
  std::string records;
  UnitsOfPrefix wanted{.name_space = {}, .tokens = prompt(96), .units = {{3, 0}, {0, 0}, {5, 0}}};
  ASSERT_TRUE(export_units(*engine, wanted, records));
  std::vector<TierKey> keys = keys_in(records);
  ASSERT_EQ(keys.size(), 2u) << "page 5 is not computed";
  records.clear();
  wanted.units = {{0, 0}, {3, 0}};
  ASSERT_TRUE(export_units(*engine, wanted, records));
  EXPECT_EQ(keys_in(records), (std::vector{keys[1], keys[0]}));
  records.clear();
  wanted.name_space.salt = "another";
  ASSERT_TRUE(export_units(*engine, wanted, records));
  EXPECT_EQ(records, "");
}

// A prompt of one token more than whole pages leaves a snapshot at their end.
TEST(ExportUnits, SendsTheSnapshotAtTheEnd) {
  auto engine = engine_with(config_of("ling3-tiny"), 129);
  UnitsOfPrefix wanted{.name_space = {}, .tokens = prompt(128), .units = {{7, 1}}};
  std::string records;
  ASSERT_TRUE(export_units(*engine, wanted, records));
  EXPECT_EQ(keys_in(records).size(), 1u);
}

TEST(ExportUnits, NamesWhatDoesNotExist) {
  auto engine = engine_with(config_of("qwen3-tied"), 65);
  std::string records;
  for (RestoreUnit unit : {RestoreUnit{4, 0}, RestoreUnit{-1, 0}, RestoreUnit{0, 1},
                           RestoreUnit{0, -1}, RestoreUnit{0, 100}}) {
    Status sent =
        export_units(*engine, {.name_space = {}, .tokens = prompt(64), .units = {unit}}, records);
    ASSERT_FALSE(sent) << unit.page << " " << unit.unit_class;
    EXPECT_EQ(sent.error().code, ErrorCode::kInvalidArgument);
  }
  EXPECT_EQ(records, "");
}

TEST(ExportUnits, CannotSendStatesOfADevice) {
  EngineConfig config = config_of("qwen3-tied");
  config.kernels = "fenced";
  auto engine = value_or_abort(Engine::load(config));
  std::string records;
  Status sent =
      export_units(*engine, {.name_space = {}, .tokens = prompt(64), .units = {{0, 0}}}, records);
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code, ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace banyan::test::export_units_test
