// Concurrent requests give the same results as single ones, and each of them ends.
#include "banyan/async_llm.h"

#include <gtest/gtest.h>

#include <future>
#include <string>
#include <vector>

#include "support/api.h"

namespace banyan::async_llm_test {
namespace {

using Outcome = std::future<Result<Generation>>;

class AsyncLlmTest : public testing::Test {
 protected:
  Outcome start(AsyncLlm& model, const TextRequest& request, std::string* streamed = nullptr) {
    auto promise = std::make_shared<std::promise<Result<Generation>>>();
    AsyncLlm::TextSinks sinks;
    if (streamed != nullptr) {
      sinks.event = [streamed](const TextEvent& event) { *streamed += event.text; };
    }
    sinks.done = [promise](Result<Generation> g) { promise->set_value(std::move(g)); };
    cancel_ = model.generate(request, std::move(sinks));
    return promise->get_future();
  }

  static TextRequest request(int i) {
    return {.text = "Day " + std::to_string(i),
            .sampling = {.temperature = 0},
            .options = {.logprobs = true}};
  }

  // With a queue that is smaller than what the tests ask for.
  std::unique_ptr<Llm> llm_ =
      test::tiny_llm({}, {.ends = true, .vocabulary = 800, .context = 4096, .queued_max = 4});
  AsyncLlm::Cancel cancel_;
};

TEST_F(AsyncLlmTest, WhatIsKeptToCancelKeepsNothingAlive) {
  auto held = std::make_shared<int>(7);
  std::weak_ptr<int> watched = held;
  {
    AsyncLlm model(*llm_);
    std::promise<void> over;
    cancel_ = model.generate(
        request(1), {.event = {}, .done = [held = std::move(held), &over](Result<Generation>) {
                       over.set_value();
                     }});
    over.get_future().wait();
  }
  EXPECT_TRUE(watched.expired());
}

TEST_F(AsyncLlmTest, AHoldMayOutliveTheModelsThreads) {
  std::vector<AsyncLlm::Hold> holds;
  {
    AsyncLlm model(*llm_);
    Generation g = start(model, request(1)).get().value();
    for (int i = 0; i < 3; ++i) holds.push_back(model.hold(g.prompt_ids));
    holds.pop_back();
  }
  AsyncLlm again(*llm_);  // whose holds have the same names
  holds.push_back(again.hold({1, 2, 3}));
  holds.clear();
  EXPECT_TRUE(start(again, request(2)).get());
}

TEST_F(AsyncLlmTest, ManyAtOnceAreWhatEachIsAlone) {
  constexpr int kRequests = 20;
  std::vector<std::string> streamed(kRequests);
  std::vector<Generation> results;
  {
    AsyncLlm model(*llm_);
    std::vector<Outcome> outcomes;
    for (int i = 0; i < kRequests; ++i) outcomes.push_back(start(model, request(i), &streamed[i]));
    for (Outcome& outcome : outcomes) results.push_back(outcome.get().value());
  }
  for (int i = 0; i < kRequests; ++i) {
    Generation alone = llm_->generate(request(i)).value();
    EXPECT_EQ(results[i].text, alone.text);
    EXPECT_EQ(streamed[i], alone.text);
    EXPECT_EQ(results[i].output_ids, alone.output_ids);
    EXPECT_EQ(results[i].prompt_ids, alone.prompt_ids);
    EXPECT_EQ(results[i].finish, alone.finish);
    EXPECT_EQ(results[i].logprobs.size(), alone.logprobs.size());
  }
}

TEST_F(AsyncLlmTest, ErrorsOfARequestComeToIt) {
  AsyncLlm model(*llm_);
  TextRequest wrong = request(0);
  wrong.sampling.temperature = -1;
  auto refused = start(model, wrong).get();
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("temperature"), std::string::npos);
  EXPECT_TRUE(start(model, request(1)).get());
}

TEST_F(AsyncLlmTest, EveryRequestEndsWithTheModel) {
  std::vector<Outcome> outcomes;
  {
    AsyncLlm model(*llm_);
    for (int i = 0; i < 12; ++i) {
      TextRequest longer = request(i);
      longer.options.max_new_tokens = 3000;
      longer.options.ignore_eos = true;
      outcomes.push_back(start(model, longer));
    }
    cancel_();  // the last, which still waits
    cancel_();
  }
  for (Outcome& outcome : outcomes) {
    ASSERT_EQ(outcome.wait_for(std::chrono::seconds(0)), std::future_status::ready);
    auto result = outcome.get();
    if (result) {
      EXPECT_EQ(result->finish, FinishReason::kCancelled);
    } else {
      EXPECT_NE(result.error().code, ErrorCode::kInvalidArgument) << result.error().message;
    }
  }
}

}  // namespace
}  // namespace banyan::async_llm_test
