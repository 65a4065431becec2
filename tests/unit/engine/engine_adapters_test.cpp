// LoRA adapters of an engine: many in one batch give each request its naive run, prefixes belong to
// what an adapter contains, and adapters come and go while others run.
#include <gtest/gtest.h>

#include <cstring>

#include "support/drive.h"
#include "support/models/adapters.h"
#include "support/models/grown_checkpoint.h"
#include "support/value_or_abort.h"

namespace banyan::test::engine_adapters_test {
namespace {

std::vector<TokenId> tokens_from(TokenId first, int64_t count) {
  std::vector<TokenId> tokens;
  for (int64_t i = 0; i < count; ++i) tokens.push_back((first + static_cast<TokenId>(i) * 7) % 89);
  return tokens;
}

GenerateRequest request_of(const std::string& adapter, int64_t prompt_tokens = 37,
                           int64_t output_tokens = 12) {
  return {.prompt = tokens_from(3, prompt_tokens),
          .sampling = {.temperature = 0},
          .options = {.max_new_tokens = output_tokens, .adapter = adapter}};
}

EngineConfig config_of(const std::string& golden) {
  return {.model_path = golden_folder(golden),
          .dtype = "bf16",
          .threads = 1,
          .page_size_tokens = 8,
          .total_tokens_max = 512,
          .chunked_prefill_tokens = 64};
}

Status load(Engine& engine, const std::string& name, const std::string& path) {
  auto packed = engine.pack_adapter({name, path});
  if (!packed) return std::unexpected(packed.error());
  return engine.add_adapter(*packed);
}

// An adapter of everything, one of attention alone, and one of lower rank.
class Adapters : public testing::TestWithParam<const char*> {
 protected:
  Adapters() : config_(config_of(GetParam())) {
    TestAdapter all(GetParam(), 1), part(GetParam(), 2), other(GetParam(), 3);
    part.keep("attn");
    config_.adapters = {{"all", all.save(folders_[0])},
                        {"part", part.save(folders_[1])},
                        {"other", other.save(folders_[2]), 0.5}};
  }

  TemporaryFolder folders_[3];
  EngineConfig config_;
};

TEST_P(Adapters, RequestsBesideEachOtherGetTheirNaiveRuns) {
  for (const std::string& kernels : all_kernels()) {
    SCOPED_TRACE(kernels);
    config_.kernels = kernels;
    config_.threads = 1;
    config_.radix_cache = false;
    config_.drafters.clear();
    std::unique_ptr<Engine> naive = load_engine(config_);
    config_.threads = 2;
    config_.radix_cache = true;
    config_.chunked_prefill_tokens = 16;
    config_.drafters = {"ngram", "suffix"};
    config_.measure_drafts = false;
    std::unique_ptr<Engine> engine = load_engine(config_);
    std::vector<GenerateRequest> requests;
    for (int64_t length : {20, 33}) {
      for (const char* adapter : {"", "all", "part", "other"}) {
        requests.push_back(request_of(adapter, length));
      }
    }
    std::vector<Heard> heard(requests.size());
    for (size_t i = 0; i < requests.size(); ++i) {
      ASSERT_TRUE(engine->submit(requests[i], hear_into(heard[i])).has_value());
    }
    while (engine->step()) {
    }
    for (size_t i = 0; i < requests.size(); ++i) {
      SCOPED_TRACE(i);
      expect_same(heard[i], run_alone(*naive, requests[i]));
      if (i % 4 == 0) continue;
      EXPECT_FALSE(same_bits(heard[i].output_logprobs(), heard[i - i % 4].output_logprobs()));
    }
  }
}

// Rows without an adapter have the bits of an engine that knows none.
TEST_P(Adapters, TheModelItselfStaysAsItIs) {
  EngineConfig plain = config_;
  plain.adapters.clear();
  Heard expected = run_alone(*load_engine(plain), request_of(""));
  std::unique_ptr<Engine> engine = load_engine(config_);
  Heard adapted, base;
  ASSERT_TRUE(engine->submit(request_of("all"), hear_into(adapted)).has_value());
  ASSERT_TRUE(engine->submit(request_of(""), hear_into(base)).has_value());
  while (engine->step()) {
  }
  expect_same(base, expected);
}

INSTANTIATE_TEST_SUITE_P(All, Adapters,
                         testing::Values("qwen3-tied", "phi3", "glm4-moe-lite", "qwen3-next"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

class LoadedAdapters : public testing::Test {
 protected:
  LoadedAdapters() {
    config_.adapters_max = 1;
    config_.adapter_rank_max = 8;
    TestAdapter(kModel, 1).save(one_);
    TestAdapter(kModel, 2).save(two_);
  }

  static constexpr const char* kModel = "qwen3-tied";
  TemporaryFolder one_, two_;
  EngineConfig config_ = config_of(kModel);
};

TEST_F(LoadedAdapters, OtherWeightsUnderTheSameNameFindNoCachedPrefix) {
  std::unique_ptr<Engine> engine = load_engine(config_);
  ASSERT_TRUE(load(*engine, "poet", one_.path()));
  Heard first = run_alone(*engine, request_of("poet"));
  EXPECT_EQ(run_alone(*engine, request_of("poet")).cached_tokens, 36);
  ASSERT_TRUE(engine->remove_adapter("poet"));
  ASSERT_TRUE(load(*engine, "poet", two_.path()));
  Heard second = run_alone(*engine, request_of("poet"));
  EXPECT_EQ(second.cached_tokens, 0);
  EXPECT_FALSE(same_bits(first.output_logprobs(), second.output_logprobs()));

  // The same weights do, under any name.
  ASSERT_TRUE(engine->remove_adapter("poet"));
  ASSERT_TRUE(load(*engine, "bard", one_.path()));
  Heard again = run_alone(*engine, request_of("bard"));
  EXPECT_EQ(again.cached_tokens, 36);
  expect_same(again, first);
}

TEST_F(LoadedAdapters, OneThatIsUnloadedStaysForTheRequestsThatHaveIt) {
  std::unique_ptr<Engine> engine = load_engine(config_);
  ASSERT_TRUE(load(*engine, "poet", one_.path()));
  Heard expected = run_alone(*engine, request_of("poet")), heard;
  ASSERT_TRUE(engine->submit(request_of("poet"), hear_into(heard)).has_value());
  engine->step();
  AdapterInfo info = engine->adapters().at(0);
  EXPECT_EQ(std::pair(info.running, info.sequences), std::pair(int64_t{1}, int64_t{1}));
  ASSERT_TRUE(engine->remove_adapter("poet"));
  EXPECT_TRUE(engine->adapters().empty());
  auto refused = engine->submit(request_of("poet"), [](const TokenEvent&) {});
  EXPECT_EQ(refused.error().message, "there is no adapter \"poet\"; none is loaded");
  Status full = load(*engine, "bard", two_.path());
  EXPECT_EQ(full.error().code, ErrorCode::kExhausted);
  EXPECT_TRUE(full.error().message.contains("1 unloaded ones are still in use"));
  while (engine->step()) {
  }
  expect_same(heard, expected);
  EXPECT_TRUE(load(*engine, "bard", two_.path()));
}

TEST_F(LoadedAdapters, AreFoundByNameAndByDigest) {
  std::unique_ptr<Engine> engine = load_engine(config_);
  ASSERT_TRUE(load(*engine, "poet", one_.path()));
  AdapterInfo info = engine->adapters().at(0);
  EXPECT_EQ(info.path, one_.path());
  EXPECT_EQ(std::pair(info.rank, info.modules), std::pair(int64_t{4}, int64_t{12}));
  EXPECT_EQ(info.digest.size(), 64u);
  expect_same(run_alone(*engine, request_of(info.digest)), run_alone(*engine, request_of("poet")));
  Status twice = load(*engine, "poet", two_.path());
  EXPECT_EQ(twice.error().message, "adapter \"poet\" is already loaded; unload it first");
  Status full = load(*engine, "bard", two_.path());
  EXPECT_EQ(full.error().message,
            "adapter \"bard\": there is room for 1 adapters (--max-loaded-loras), 1 are loaded");
  Status unknown = engine->remove_adapter("bard");
  EXPECT_EQ(unknown.error().message, "there is no adapter \"bard\"; there are: \"poet\"");
}

// The scale of a source multiplies the adapter's own; at 0 nothing is left of it.
TEST_F(LoadedAdapters, AtScaleZeroAddNothing) {
  config_.adapters = {{"off", one_.path(), 0}};
  std::unique_ptr<Engine> engine = load_engine(config_);
  expect_same(run_alone(*engine, request_of("off")), run_alone(*engine, request_of("")));
}

TEST_F(LoadedAdapters, AddToQuantisedWeights) {
  config_.adapters = {{"poet", one_.path()}};
  config_.quantization = "int8";
  std::unique_ptr<Engine> engine = load_engine(config_);
  Heard adapted = run_alone(*engine, request_of("poet")), base = run_alone(*engine, request_of(""));
  EXPECT_FALSE(same_bits(adapted.output_logprobs(), base.output_logprobs()));
}

TEST_F(LoadedAdapters, TakeMemoryThatIsPlanned) {
  config_.adapters_max = 4;
  EngineInfo info = value_or_abort(inspect_model(config_));
  EXPECT_EQ(info.adapters_max, 4);
  EXPECT_EQ(info.adapter_rank_max, 8);
  EXPECT_GT(info.adapter_bytes, 0);
  config_.adapters_max = 4096;
  config_.adapter_rank_max = 4096;
  config_.adapters = {};
  auto refused = inspect_model(config_);
  if (refused) GTEST_SKIP() << "this machine has terabytes";
  EXPECT_TRUE(refused.error().message.starts_with("4096 adapters of rank 4096 take "));
}

TEST_F(LoadedAdapters, LimitsFollowFromTheFirstOnes) {
  config_.adapters_max = config_.adapter_rank_max = 0;
  config_.adapters = {{"one", one_.path()}, {"two", two_.path()}};
  EngineInfo info = value_or_abort(inspect_model(config_));
  EXPECT_EQ(std::pair(info.adapters_max, info.adapter_rank_max), std::pair(2, 4));
  config_.adapters[1].name = "one";
  EXPECT_EQ(inspect_model(config_).error().message, "adapter \"one\" is given twice");
  config_.adapters[1].name = "";
  EXPECT_EQ(inspect_model(config_).error().message,
            "an adapter's name has 0 bytes; it must have 1 to 256");
}

TEST_F(LoadedAdapters, AreRefusedWhereTheyDoNotWorkYet) {
  auto refused = [&](void (*change)(EngineConfig&)) {
    EngineConfig config = config_;
    change(config);
    return config.validate().error().message;
  };
  std::string not_yet = "adapters are not supported ";
  EXPECT_EQ(refused([](EngineConfig& c) { c.kernels = "cuda"; }), not_yet + "on a GPU yet");
  EXPECT_EQ(refused([](EngineConfig& c) { c.tp_size = 2; }),
            not_yet + "with several ranks (tp_size) yet");
  EXPECT_EQ(refused([](EngineConfig& c) { c.emulated_steps.emplace(); }),
            not_yet + "with emulated steps yet");
}

// What the message says about a changed adapter of the first module.
TEST_F(LoadedAdapters, ThatDoNotFitTheModelAreRefusedByName) {
  std::unique_ptr<Engine> engine = load_engine(config_);
  auto refused = [&](const char* golden, const auto& change) {
    TestAdapter adapter(golden);
    change(adapter);
    TemporaryFolder folder;
    auto packed = engine->pack_adapter({"poet", adapter.save(folder)});
    return packed ? "" : packed.error().message.substr(folder.path().size() + 1);
  };
  const std::string q = "model.layers.0.self_attn.q_proj";
  std::string file = "adapter_model.safetensors: ", tensor = file + "base_model.model.";
  EXPECT_EQ(refused(kModel, [](TestAdapter&) {}), "");
  EXPECT_EQ(refused(kModel,
                    [&](TestAdapter& a) {
                      a.tensor(q + ".lora_A.weight").name =
                          "base_model.model.model.layers.7.self_attn.q_proj.lora_A.weight";
                      a.tensor(q + ".lora_B.weight").name =
                          "base_model.model.model.layers.7.self_attn.q_proj.lora_B.weight";
                    }),
            tensor +
                "model.layers.7.self_attn.q_proj.lora_A.weight: this model has no matrix "
                "model.layers.7.self_attn.q_proj");
  EXPECT_EQ(refused(kModel,
                    [&](TestAdapter& a) {
                      TestTensor& b = a.tensor(q + ".lora_B.weight");
                      b.shape[0] -= 1;
                      b.bytes.resize(b.bytes.size() - 16);
                    }),
            tensor + q + ".lora_B.weight has shape [143, 4] where [144, 4] is expected");
  EXPECT_EQ(refused(kModel,
                    [&](TestAdapter& a) {
                      TestTensor& b = a.tensor(q + ".lora_A.weight");
                      b.shape[1] -= 1;
                      b.bytes.resize(b.bytes.size() - 16);
                    }),
            tensor + q + ".lora_A.weight has shape [4, 47] where [4, 48] is expected");
  for (std::string other : {"lm_head", "model.embed_tokens"}) {
    std::string message = refused(kModel, [&](TestAdapter& a) {
      a.tensor(q + ".lora_A.weight").name = "base_model.model." + other + ".lora_A.weight";
      a.tensor(q + ".lora_B.weight").name = "base_model.model." + other + ".lora_B.weight";
    });
    EXPECT_TRUE(message.contains(other == "lm_head" ? "has no matrix" : "takes no adapter"))
        << message;  // the head is the embedding
  }
  config_.adapter_rank_max = 3;
  engine = load_engine(config_);
  EXPECT_EQ(refused(kModel, [](TestAdapter&) {}),
            file + "its rank is 4, but there is room for rank 3 (--max-lora-rank)");
}

TEST_F(LoadedAdapters, OfExpertsAndAbsorbedMatricesAreRefused) {
  config_.model_path = golden_folder("glm4-moe-lite");
  std::unique_ptr<Engine> engine = load_engine(config_);
  for (const char* module :
       {"mlp.experts", "mlp.experts.3.up_proj", "mlp.gate", "self_attn.kv_b_proj"}) {
    TestAdapter adapter("glm4-moe-lite");
    adapter.keep("layers.1.self_attn.o_proj");
    for (TestTensor& tensor : adapter.tensors) {
      tensor.name.replace(tensor.name.find("self_attn.o_proj"), 16, module);
    }
    TemporaryFolder folder;
    auto packed = engine->pack_adapter({"poet", adapter.save(folder)});
    ASSERT_FALSE(packed) << module;
    EXPECT_TRUE(packed.error().message.contains(std::string("model.layers.1.") + module +
                                                " of this model takes no adapter"))
        << packed.error().message;
  }
}

}  // namespace
}  // namespace banyan::test::engine_adapters_test
