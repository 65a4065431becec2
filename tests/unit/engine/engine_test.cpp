// The life of a request in the engine: events, limits, cancellation, caching.
#include <gtest/gtest.h>

#include <cmath>

#include "support/drive.h"
#include "support/models/checkpoint_copy.h"
#include "support/shared.h"

namespace banyan::test::engine_test {
namespace {

EngineConfig small_config() {
  return {.model_path = source_path("tests/golden/models/qwen3-tied"),
          .threads = 1,
          .context_length_tokens = 64,
          .page_size_tokens = 4,
          .total_tokens_max = 96,
          .running_max = 2,
          .chunked_prefill_tokens = 8};
}

std::vector<TokenId> prompt_of(int64_t tokens) {
  std::vector<TokenId> prompt;
  for (int64_t i = 0; i < tokens; ++i) prompt.push_back(static_cast<TokenId>(3 + i * 17 % 120));
  return prompt;
}

GenerateRequest greedy(std::vector<TokenId> prompt, int64_t tokens) {
  return {.prompt = std::move(prompt),
          .sampling = {.temperature = 0},
          .options = {.max_new_tokens = tokens}};
}

class EngineLife : public testing::Test {
 protected:
  void expect_all_free() {
    EngineStats stats = engine_->stats();
    EXPECT_EQ(stats.pages_free + stats.pages_cached, stats.pages_total);
    EXPECT_EQ(stats.running, 0);
    EXPECT_EQ(stats.queued, 0);
  }

  int64_t pages_unused() {
    EngineStats stats = engine_->stats();
    return stats.pages_free + stats.pages_cached;
  }

  std::unique_ptr<Engine> engine_ = load_engine(small_config());
};

TEST_F(EngineLife, FinishesByLengthAndByContext) {
  Heard ten = run_alone(*engine_, greedy(prompt_of(20), 10));
  EXPECT_EQ(ten.output.size(), 10u);
  EXPECT_EQ(ten.finish, FinishReason::kLength);
  EXPECT_EQ(ten.ends, 1);
  EXPECT_EQ(ten.output[0].position, 20);
  EXPECT_EQ(ten.output[9].position, 29);
  Heard full = run_alone(*engine_, greedy(prompt_of(20), 1000));
  EXPECT_EQ(full.output.size(), 44u) << "the context is 64 tokens";
  EXPECT_EQ(full.finish, FinishReason::kLength);
  expect_all_free();
  EXPECT_EQ(engine_->stats().prompt_tokens, 21) << "19 of the second prompt were there";
  EXPECT_EQ(engine_->stats().cached_tokens, 19);
  EXPECT_EQ(engine_->stats().generated_tokens, 54);
}

// The second prompt arrives while the first request decodes.
TEST(EngineSteps, AreAsShortAsWantedAndGiveTheSameBits) {
  EngineConfig config = small_config();
  config.context_length_tokens = 256;
  config.total_tokens_max = 512;
  config.chunked_prefill_tokens = 256;
  Heard first[2], late[2];
  int64_t steps[2] = {};
  for (int limited : {0, 1}) {
    config.prefill_step_ms = limited == 0 ? 0 : 1e-6;  // as few rows as may be
    std::unique_ptr<Engine> engine = load_engine(config);
    ASSERT_TRUE(engine->submit(greedy(prompt_of(40), 40), hear_into(first[limited])));
    while (first[limited].output.empty()) engine->step();
    ASSERT_TRUE(engine->submit(greedy(prompt_of(210), 46), hear_into(late[limited])));
    while (late[limited].ends == 0) engine->step();
    steps[limited] = engine->stats().steps;
  }
  expect_same(first[0], first[1]);
  expect_same(late[0], late[1]);
  EXPECT_EQ(steps[1], steps[0] + 2) << "64 rows at a time";
}

TEST_F(EngineLife, StopsAtAStopToken) {
  GenerateRequest request = greedy(prompt_of(20), 10);
  std::vector<TokenId> ids = run_alone(*engine_, request).output_ids();
  request.options.stop_token_ids = {130, ids[4], ids[7]};
  size_t first =
      std::min(std::ranges::find(ids, ids[4]), std::ranges::find(ids, ids[7])) - ids.begin();
  Heard stopped = run_alone(*engine_, request);
  EXPECT_EQ(stopped.finish, FinishReason::kStop);
  EXPECT_EQ(stopped.matched_stop, ids[first]);
  EXPECT_EQ(stopped.output.size(), first + 1) << "the stop token is the last";
  // On the last token that is allowed, the reason is still the stop token.
  request.options.max_new_tokens = static_cast<int64_t>(first) + 1;
  EXPECT_EQ(run_alone(*engine_, request).finish, FinishReason::kStop);
}

TEST_F(EngineLife, ScoresWithoutGenerating) {
  std::vector<TokenId> prompt = prompt_of(20);
  Heard scored = run_alone(
      *engine_, {.prompt = prompt, .options = {.max_new_tokens = 0, .prompt_logprobs_begin = 0}});
  ASSERT_EQ(scored.prompt.size(), 19u) << "position 0 has none";
  for (size_t i = 0; i < scored.prompt.size(); ++i) {
    EXPECT_EQ(scored.prompt[i].position, static_cast<int64_t>(i) + 1);
    EXPECT_EQ(scored.prompt[i].token, prompt[i + 1]);
    EXPECT_LT(scored.prompt[i].logprob, 0);
  }
  EXPECT_TRUE(scored.output.empty());
  EXPECT_EQ(scored.finish, FinishReason::kLength);
  expect_all_free();
  for (int64_t begin : {1, 2, 8, 9, 19, 20}) {
    Heard part = run_alone(
        *engine_,
        {.prompt = prompt, .options = {.max_new_tokens = 2, .prompt_logprobs_begin = begin}});
    ASSERT_EQ(part.prompt.size(), static_cast<size_t>(20 - begin));
    for (const Heard::Token& token : part.prompt) {
      EXPECT_EQ(token.logprob, scored.prompt[static_cast<size_t>(token.position) - 1].logprob);
    }
    EXPECT_EQ(part.output.size(), 2u);
  }
  Heard none = run_alone(*engine_, {.prompt = {7}, .options = {.max_new_tokens = 0}});
  EXPECT_EQ(none.finish, FinishReason::kLength);
}

TEST_F(EngineLife, CancelGivesPagesBackWithinOneStep) {
  GenerateRequest request = greedy(prompt_of(24), 16);  // three steps to read the prompt
  std::vector<Heard> heard(3);
  std::vector<SequenceId> ids;
  for (Heard& h : heard) ids.push_back(engine_->submit(request, hear_into(h)).value());

  engine_->cancel(ids[2]);  // waiting
  engine_->step();
  EXPECT_EQ(heard[2].finish, FinishReason::kCancelled);
  EXPECT_EQ(pages_unused(), 24 - 2) << "two pages of the first, which the second waits for";

  engine_->cancel(ids[1]);  // reading its prompt
  engine_->step();
  EXPECT_EQ(heard[1].finish, FinishReason::kCancelled);
  EXPECT_TRUE(heard[1].output.empty());
  EXPECT_EQ(pages_unused(), 24 - 4);

  while (heard[0].output.size() < 3) engine_->step();
  engine_->cancel(ids[0]);  // writing
  EXPECT_FALSE(engine_->step());
  EXPECT_EQ(heard[0].finish, FinishReason::kCancelled);
  EXPECT_EQ(heard[0].output.size(), 3u);
  expect_all_free();

  engine_->cancel(ids[0]);  // ended
  engine_->cancel(12345);   // never was
  EXPECT_FALSE(engine_->step());
  for (const Heard& h : heard) EXPECT_EQ(h.ends, 1);
}

TEST_F(EngineLife, ASinkMaySubmitAndCancel) {
  Heard first, second, victim;
  std::optional<SequenceId> victim_id;
  auto id = engine_->submit(greedy(prompt_of(4), 3), [&](const TokenEvent& event) {
    first.hear(event);
    if (first.output.size() == 1) engine_->cancel(*victim_id);
    if (event.finish == FinishReason::kNone) return;
    for (int i = 0; i < 50; ++i) {  // the queue grows under the engine's feet
      auto more = engine_->submit(greedy(prompt_of(2), 1), [](const TokenEvent&) {});
      ASSERT_TRUE(more.has_value()) << more.error().message;
    }
    ASSERT_TRUE(engine_->submit(greedy(prompt_of(4), 3), hear_into(second)));
  });
  ASSERT_TRUE(id.has_value());
  victim_id = engine_->submit(greedy(prompt_of(4), 30), hear_into(victim)).value();
  while (engine_->step()) {
  }
  EXPECT_EQ(first.output.size(), 3u);
  EXPECT_EQ(victim.finish, FinishReason::kCancelled);
  EXPECT_LE(victim.output.size(), 1u);
  EXPECT_EQ(second.output_ids(), first.output_ids());
  expect_all_free();
}

TEST_F(EngineLife, ASinkMayCancelItself) {
  Heard heard;
  SequenceId id = 0;
  id = engine_
           ->submit(greedy(prompt_of(4), 30),
                    [&](const TokenEvent& event) {
                      heard.hear(event);
                      engine_->cancel(id);
                    })
           .value();
  while (engine_->step()) {
  }
  EXPECT_EQ(heard.output.size(), 1u);
  EXPECT_EQ(heard.finish, FinishReason::kCancelled);
  EXPECT_EQ(heard.ends, 1);
  expect_all_free();
}

TEST_F(EngineLife, ACancelledSinkMaySubmit) {
  Heard second;
  auto id = engine_->submit(greedy(prompt_of(4), 30), [&](const TokenEvent& event) {
    if (event.finish == FinishReason::kCancelled) {
      ASSERT_TRUE(engine_->submit(greedy(prompt_of(4), 2), hear_into(second)));
    }
  });
  engine_->step();
  engine_->cancel(id.value());
  while (engine_->step()) {
  }
  EXPECT_EQ(second.output.size(), 2u) << "step() goes on for what a cancelled sink submitted";
}

TEST_F(EngineLife, EndsWhenItsTimeIsOver) {
  GenerateRequest request = greedy(prompt_of(24), 30);
  request.options.timeout_s = 1e-9;
  Heard late = run_alone(*engine_, request);
  EXPECT_EQ(late.finish, FinishReason::kTimeout);
  EXPECT_TRUE(late.output.empty());
  request.options.timeout_s = 1e6;
  EXPECT_EQ(run_alone(*engine_, request).finish, FinishReason::kLength);
  expect_all_free();
  request.options.age_s = -1;
  Result<SequenceId> refused = engine_->submit(request, [](const TokenEvent&) {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "age_s is -1; it must be between 0 and 1000000000");
}

TEST_F(EngineLife, DrawsNoStopTokenBeforeTheFewestTokens) {
  GenerateRequest request = greedy(prompt_of(20), 12);
  std::vector<TokenId> ids = run_alone(*engine_, request).output_ids();
  request.options.stop_token_ids = {ids[0], ids[5]};
  EXPECT_EQ(run_alone(*engine_, request).output.size(), 1u);
  request.options.min_new_tokens = 4;
  Heard longer = run_alone(*engine_, request);
  EXPECT_GE(longer.output.size(), 5u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_NE(longer.output[i].token, ids[0]);
    EXPECT_NE(longer.output[i].token, ids[5]);
  }
}

TEST_F(EngineLife, ReportsTheTokensThatWereNamed) {
  GenerateRequest request = greedy(prompt_of(6), 3);
  request.options.prompt_logprobs_begin = 1;
  request.options.top_logprobs = 131;
  request.options.logprob_token_ids = {130, 0, 77};
  EXPECT_FALSE(engine_->submit(request, [](const TokenEvent&) {})) << "128 at most";
  request.options.top_logprobs = 128;
  Heard heard = run_alone(*engine_, request);
  ASSERT_EQ(heard.prompt.size() + heard.output.size(), 8u);
  for (const auto& tokens : {heard.prompt, heard.output}) {
    for (const Heard::Token& token : tokens) {
      ASSERT_EQ(token.chosen.size(), 3u);
      EXPECT_EQ(token.chosen[0].token, 130);
      EXPECT_EQ(token.chosen[2].token, 77);
      auto same = std::ranges::find(token.top, 77, &TokenLogprob::token);
      if (same == token.top.end()) continue;
      EXPECT_EQ(same->logprob, token.chosen[2].logprob);
    }
  }
}

TEST_F(EngineLife, TellsHowMuchWasCached) {
  GenerateRequest request = greedy(prompt_of(24), 4);
  EXPECT_EQ(run_alone(*engine_, request).cached_tokens, 0);
  Heard again = run_alone(*engine_, request);
  EXPECT_EQ(again.cached_tokens, 23) << "all but the last, whose logits are needed";
  request.options.cache_salt = "another tenant";
  EXPECT_EQ(run_alone(*engine_, request).cached_tokens, 0);
  request.options.cache_salt.clear();
  engine_->flush_cache();
  EXPECT_EQ(run_alone(*engine_, request).cached_tokens, 0);
  request.options.prompt_logprobs_begin = 10;
  EXPECT_EQ(run_alone(*engine_, request).cached_tokens, 9) << "position 9 speaks of token 10";
}

TEST_F(EngineLife, ReportsHowMuchOfThePromptIsComputed) {
  GenerateRequest request = greedy(prompt_of(20), 2);
  auto positions = [&] {
    std::vector<int64_t> found;
    bool ended = false;
    auto sink = [&](const TokenEvent& event) {
      if (event.is_progress()) found.push_back(event.position);
      if (event.has_token) {
        found.push_back(-event.token);
      }
      ended = event.finish != FinishReason::kNone;
    };
    EXPECT_TRUE(engine_->submit(request, sink));
    while (!ended) engine_->step();
    return found;
  };
  std::vector<int64_t> plain = positions();
  engine_->flush_cache();
  request.options.prompt_progress = true;
  std::vector<int64_t> expected = {8, 16, 20};  // chunks of 8 tokens
  expected.insert(expected.end(), plain.begin(), plain.end());
  EXPECT_EQ(positions(), expected);
  expected.erase(expected.begin(), expected.begin() + 2);
  EXPECT_EQ(positions(), expected) << "all but the last token is cached";
}

// Twenty tokens that belong to nobody else.
std::vector<TokenId> prompt_apart(int which) {
  std::vector<TokenId> prompt = prompt_of(20);
  prompt[0] = static_cast<TokenId>(which);
  return prompt;
}

TEST_F(EngineLife, HeldPrefixesAreForgottenLast) {
  auto fill = [&] {
    for (int other : {10, 11, 12, 13}) run_alone(*engine_, greedy(prompt_apart(other), 1));
  };
  auto cached = [&] { return run_alone(*engine_, greedy(prompt_apart(5), 1)).cached_tokens; };
  EXPECT_EQ(cached(), 0);
  fill();
  EXPECT_LT(cached(), 19) << "24 pages hold four such prompts and a part of the fifth";
  engine_->hold(7, prompt_apart(5));
  fill();
  EXPECT_EQ(cached(), 19);
  engine_->release(7);
  engine_->release(8);  // nothing
  fill();
  EXPECT_LT(cached(), 19);

  // Holds take room from no request, not even all of them together.
  for (int other : {10, 11, 12, 13}) {
    engine_->hold(static_cast<uint64_t>(other), prompt_apart(other));
    run_alone(*engine_, greedy(prompt_apart(other), 1));
  }
  Heard all = run_alone(*engine_, greedy(prompt_of(60), 100));
  EXPECT_EQ(all.finish, FinishReason::kLength);
  EXPECT_EQ(all.output.size(), 4u);
  expect_all_free();
}

TEST_F(EngineLife, FirstComeFirstServed) {
  std::vector<SequenceId> order;
  for (int i = 0; i < 6; ++i) {
    auto id = engine_->submit(greedy(prompt_of(3), 2), [&](const TokenEvent& event) {
      if (event.finish != FinishReason::kNone) order.push_back(event.sequence);
    });
    ASSERT_TRUE(id.has_value());
  }
  while (engine_->step()) {
    EXPECT_LE(engine_->stats().running, 2);
  }
  EXPECT_TRUE(std::ranges::is_sorted(order));
  EXPECT_EQ(order.size(), 6u);
}

// A token whose embedding is NaN affects only its own request: neither those that run at the same
// time, nor those that reuse its pages.
TEST(EngineDamage, ARequestThatMeetsNaNEndsAloneWithAnError) {
  constexpr TokenId kPoison = 77;
  CheckpointCopy copy("llama31-gqa");
  size_t width = copy.config.at("hidden_size");
  TemporaryFolder clean_folder, folder;
  copy.save(clean_folder);
  for (size_t i = 0; i < width; ++i) {
    copy.set("model.embed_tokens.weight", kPoison * width + i, std::nanf(""));
  }
  copy.save(folder);
  GenerateRequest good{.prompt = prompt_of(30),
                       .options = {.max_new_tokens = 20, .prompt_logprobs_begin = 0}};
  for (TokenId& token : good.prompt) token = token == kPoison ? 1 : token % 90;
  good.sampling.logit_bias = {{kPoison, -100}};
  GenerateRequest bad = good;
  bad.prompt[9] = kPoison;

  for (const char* dtype : {"auto", "bf16"}) {
    EngineConfig config = small_config();
    config.dtype = dtype;
    config.model_path = clean_folder.path();
    Heard expected = run_alone(*load_engine(config), good);
    config.model_path = folder.path();
    std::unique_ptr<Engine> engine = load_engine(config);
    std::vector<Heard> heard(4);
    for (size_t i = 0; i < heard.size(); ++i) {
      ASSERT_TRUE(engine->submit(i % 2 == 0 ? bad : good, hear_into(heard[i])));
    }
    while (engine->step()) {
    }
    for (size_t i : {0, 2}) {
      EXPECT_EQ(heard[i].finish, FinishReason::kError);
      EXPECT_EQ(heard[i].error.code, ErrorCode::kCorrupt);
      EXPECT_NE(heard[i].error.message.find("position 10: the model's output is not a number"),
                std::string::npos)
          << heard[i].error.message;
      EXPECT_EQ(heard[i].prompt.size(), 9u) << "up to the damage all is well";
    }
    for (size_t i : {1, 3}) {
      EXPECT_EQ(heard[i].finish, FinishReason::kLength);
      EXPECT_EQ(heard[i].output_ids(), expected.output_ids());
      EXPECT_TRUE(same_bits(heard[i].output_logprobs(), expected.output_logprobs()));
    }
    EngineStats stats = engine->stats();
    EXPECT_EQ(stats.pages_free + stats.pages_cached, stats.pages_total);
  }
}

}  // namespace
}  // namespace banyan::test::engine_test
