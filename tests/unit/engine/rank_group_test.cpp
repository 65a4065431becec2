// Several ranks behind one engine: they compute what a request gets alone, whatever runs with it.
#include "engine/ranks/group.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>
#include <set>

#include "engine/assemble.h"
#include "engine/ranks/message.h"
#include "engine/schedule/scheduler.h"
#include "support/drive.h"
#include "support/shared.h"

namespace banyan::test::rank_group_test {
namespace {

// KDA, MLA, experts and a trained MTP layer.
EngineConfig nano(int ranks) {
  return {.model_path = source_path("models/banyan-nano"),
          .threads = 1,
          .tp_size = ranks,
          .page_size_tokens = 16,
          .total_tokens_max = 2048,
          .running_max = 4,
          .chunked_prefill_tokens = 32,
          .draft_tokens_max = 3,
          .measure_drafts = false};
}

EngineConfig drafting(EngineConfig config, const char* drafter, int scheduler_steps = 1) {
  config.drafters = {drafter};
  config.scheduler_steps = scheduler_steps;
  if (std::string_view(drafter) == "draft") config.draft_model_path = config.model_path;
  return config;
}

EngineConfig overlapping(EngineConfig config) {
  config.overlap_schedule = true;
  return config;
}

GenerateRequest copying(uint32_t sample) {
  std::vector<TokenId> prompt = {3, 400, 5, 2178, 20, 1162, 20, 1061, 20, 1608, 20, 1886, 2, 4};
  for (TokenId t = 0; t < 60; ++t) prompt.push_back(2178 - t % 7);
  prompt.resize(prompt.size() - sample * 11);  // the beginning is shared
  return {.prompt = prompt,
          .sampling = {.temperature = 0.7f, .seed = 7, .sample_index = sample},
          .options = {.max_new_tokens = 20, .min_new_tokens = 0, .top_logprobs = 2}};
}

TEST(RankGroup, EveryRequestGetsWhatItGetsAlone) {
  for (int ranks : {2, 3}) {
    EngineConfig alone = nano(ranks);
    alone.chunked_prefill_tokens = 512;
    alone.radix_cache = false;
    auto plain = load_engine(alone);
    EXPECT_EQ(plain->info().tp_size, ranks);
    std::vector<Heard> expected;
    for (uint32_t i = 0; i < 4; ++i) expected.push_back(run_alone(*plain, copying(i)));
    for (const EngineConfig& config :
         {nano(ranks), overlapping(nano(ranks)), drafting(nano(ranks), "mtp"),
          drafting(nano(ranks), "mtp", 3), drafting(nano(ranks), "draft")}) {
      SCOPED_TRACE(fmt::format("{} ranks, {} steps, drafts by {}", ranks, config.scheduler_steps,
                               config.drafters.empty() ? "none" : config.drafters[0]));
      auto engine = load_engine(config);
      std::vector<Heard> heard(expected.size());
      for (uint32_t i = 0; i < heard.size(); ++i) {
        ASSERT_TRUE(engine->submit(copying(i), hear_into(heard[i])));
      }
      while (engine->step()) EngineAssembly::scheduler(*engine).check();
      for (size_t i = 0; i < heard.size(); ++i) expect_same(heard[i], expected[i]);
      int64_t accepted = engine->stats().accepted_draft_tokens;
      EXPECT_GE(accepted, config.drafters.empty() ? 0 : 10);
      int64_t ahead = EngineAssembly::overlapped_steps(*engine);
      EXPECT_GE(ahead, config.scheduler_steps > 1 ? 5 : 0);
    }
  }
}

TEST(RankGroup, ReportsTheWholeModel) {
  const EngineInfo one = load_engine(nano(1))->info();
  const EngineInfo three = load_engine(nano(3))->info();
  EXPECT_EQ(three.parameters_total, one.parameters_total);
  EXPECT_EQ(three.weight_bytes, one.weight_bytes);
  EXPECT_EQ(three.threads, 3);
  EXPECT_EQ(three.total_tokens_max, one.total_tokens_max);
  EXPECT_GE(three.state_bytes_per_token, one.state_bytes_per_token);  // latents are on every rank
}

// The processors that the threads of this process may use, each thread's as a set.
std::vector<std::set<int>> processors_of_threads() {
  std::vector<std::set<int>> all;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (::sched_getaffinity(std::stoi(entry.path().filename()), sizeof(set), &set) != 0) continue;
    std::set<int>& processors = all.emplace_back();
    for (int i = 0; i < CPU_SETSIZE; ++i) {
      if (CPU_ISSET(i, &set)) processors.insert(i);
    }
  }
  return all;
}

TEST(RankGroup, EachHasItsPartOfTheProcessors) {
  std::set<int> all = processors_of_threads()[0];
  if (all.size() < 2) GTEST_SKIP() << "one processor";
  auto engine = load_engine(nano(2));
  bool found = false;  // the thread of the second
  for (const std::set<int>& processors : processors_of_threads()) {
    found = found || (processors.contains(*all.rbegin()) && !processors.contains(*all.begin()));
  }
  EXPECT_TRUE(found);
  engine.reset();
  for (const std::set<int>& processors : processors_of_threads()) EXPECT_EQ(processors, all);
}

TEST(RankGroup, WhatOneCannotLoadNoneDoes) {
  auto error_of = [](EngineConfig config) {
    auto engine = Engine::load(config);
    return engine ? std::string("loaded") : engine.error().message;
  };
  EXPECT_EQ(error_of(nano(5)).find("5 ranks cannot divide this model: "), 0u);
  EngineConfig config = nano(2);
  config.model_path = source_path("tests");
  EXPECT_NE(error_of(config).find("tests"), std::string::npos);
  config = nano(2);
  config.context_length_tokens = 1 << 24;
  EXPECT_NE(error_of(config).find("exceeds the model's context"), std::string::npos);
  config = nano(2);
  config.total_tokens_max = int64_t{1} << 31;
  EXPECT_NE(error_of(config).find("too little for the states"), std::string::npos);
}

TEST(RankGroup, RefusesWhatOneRankAloneCanDo) {
  auto refusal = [](auto change) {
    EngineConfig config = nano(2);
    change(config);
    return config.validate().error().message;
  };
  EXPECT_EQ(refusal([](EngineConfig& c) { c.kernels = "cuda"; }),
            "tp_size is 2, but a GPU is used on one rank only so far");
  EXPECT_EQ(refusal([](EngineConfig& c) { c.kernels = "fenced"; }),
            "tp_size is 2, but these kernels run on one rank only so far");
  EXPECT_EQ(refusal([](EngineConfig& c) {
              c.cache_storage.backend = "disk";
              c.cache_storage.directory = "store";
              c.cache_storage.size_bytes = 1 << 20;
            }),
            "tp_size is 2, but prefixes are stored on one rank only so far");
  EXPECT_EQ(refusal([](EngineConfig& c) {
              c.emulated_steps.emplace();
              c.total_tokens_max = 64;
            }),
            "tp_size is 2, but steps are emulated on one rank only so far");
}

TEST(RankMessage, AConfigAndABatchArriveAsTheyWere) {
  EngineConfig config = drafting(nano(3), "mtp", 2);
  config.quantization_overrides = {"a=int4", "b=none"};
  config.moba_decode = false;
  config.cache_storage.url = "redis://host";
  Batch batch;
  batch.tokens = {7, -1, 9};
  batch.spans = {{.row_begin = 0, .row_count = 3, .first_position = 5}};
  batch.tables[1].units = {4, 5};
  batch.tables[1].captures = {{.span = 0, .position = 6, .slot = 2}};
  batch.logit_rows = {2};
  std::vector<std::byte> bytes;
  MessageWriter writer(bytes);
  writer.put(config);
  writer.put(batch);
  MessageReader reader(bytes);
  auto config_read = reader.get<EngineConfig>();
  auto batch_read = reader.get<Batch>();
  EXPECT_TRUE(reader.done());
  EXPECT_EQ(config_read.model_path, config.model_path);
  EXPECT_EQ(config_read.tp_size, 3);
  EXPECT_EQ(config_read.quantization_overrides, config.quantization_overrides);
  EXPECT_EQ(config_read.moba_decode, std::optional(false));
  EXPECT_EQ(config_read.overlap_schedule, std::nullopt);
  EXPECT_EQ(config_read.drafters, config.drafters);
  EXPECT_EQ(config_read.scheduler_steps, 2);
  EXPECT_EQ(config_read.cache_storage.url, "redis://host");
  EXPECT_EQ(config_read.cache_storage.write_policy, "write_back");
  EXPECT_EQ(batch_read.tokens, batch.tokens);
  ASSERT_EQ(batch_read.spans.size(), 1u);
  EXPECT_EQ(batch_read.spans[0].first_position, 5);
  EXPECT_EQ(batch_read.tables[1].units, batch.tables[1].units);
  ASSERT_EQ(batch_read.tables[1].captures.size(), 1u);
  EXPECT_EQ(batch_read.tables[1].captures[0].slot, 2);
  EXPECT_EQ(batch_read.logit_rows, batch.logit_rows);
  std::vector<std::byte> again;
  MessageWriter second(again);
  second.put(config_read);
  second.put(batch_read);
  EXPECT_EQ(again, bytes);
}

}  // namespace
}  // namespace banyan::test::rank_group_test
