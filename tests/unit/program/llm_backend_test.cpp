// Programs on a model in this process get the same results as direct calls with the same prompts.
#include <gtest/gtest.h>

#include <algorithm>

#include "banyan/llm.h"
#include "banyan/program.h"
#include "llm/llm_parts.h"
#include "program/reuse_meter.h"
#include "program/workloads.h"
#include "support/api.h"
#include "text/tokenizer/tokenizer.h"

namespace banyan::llm_backend_test {
namespace {

constexpr const char* kTemplate =
    "{% for m in messages %}<{{ m.role }}>{{ m.content }};{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}";

class LlmBackendTest : public testing::Test {
 protected:
  // Runs a program on the model, which is free again afterwards.
  State run(const Interpreter::Body& body, RunOptions options = {}) {
    options.sampling = SamplingParams{.temperature = 0};
    Interpreter interpreter(in_process_backend(*llm_), {.threads = 2});
    State state = interpreter.run(body, options);
    text_ = state.text().value_or("");
    return state;
  }
  Generation alone(TextRequest request) {
    request.sampling = {.temperature = 0};
    return llm_->generate(request).value();
  }

  std::unique_ptr<Llm> llm_ = test::tiny_llm(kTemplate, {.radix_cache = true,
                                                         .ends = true,
                                                         .vocabulary = 800,
                                                         .context = 4096,
                                                         .page_size = 16,
                                                         .queued_max = 6});
  std::string text_;
};

TEST_F(LlmBackendTest, GensAreWhatTheModelGivesToTheSamePrompts) {
  std::string streamed;
  State s = run(
      [](State& s) {
        s += "Once" + gen("a", {.max_new_tokens = 12}) + "." +
             gen("b", {.max_new_tokens = 5, .logprobs = true});
      },
      {.on_text = [&](std::string_view, std::string_view piece) { streamed += piece; }});
  ASSERT_FALSE(s.error()) << s.error()->message;
  Generation a = alone({.text = "Once", .options = {.max_new_tokens = 12}});
  EXPECT_EQ(s.get("a").value(), a.text);
  Generation b =
      alone({.text = "Once" + a.text + ".", .options = {.max_new_tokens = 5, .logprobs = true}});
  EXPECT_EQ(s.get("b").value(), b.text);
  EXPECT_EQ(streamed, a.text + b.text);
  CallInfo info = s.info("b").value();
  EXPECT_EQ(info.finish, b.finish);
  EXPECT_EQ(info.usage.completion_tokens, static_cast<int64_t>(b.output_ids.size()));
  EXPECT_EQ(info.usage.prompt_tokens, static_cast<int64_t>(b.prompt_ids.size()));
  ASSERT_EQ(info.logprobs.size(), b.logprobs.size());
  for (size_t i = 0; i < b.logprobs.size(); ++i) {
    EXPECT_EQ(info.logprobs[i].logprob, b.logprobs[i].logprob);
  }
}

TEST_F(LlmBackendTest, MessagesAreTheTemplates) {
  State s = run([](State& s) {
    s += system("Be brief") + user("Hi");
    s += assistant(gen("a", {.max_new_tokens = 4}));
  });
  ASSERT_FALSE(s.error()) << s.error()->message;
  std::string prompt = llm_->apply_chat_template({{"system", "Be brief"}, {"user", "Hi"}}).value();
  Generation a =
      alone({.text = prompt, .add_special_tokens = false, .options = {.max_new_tokens = 4}});
  EXPECT_EQ(s.get("a").value(), a.text);
  EXPECT_EQ(text_, prompt + a.text + ";");
}

TEST_F(LlmBackendTest, StopsAndGrammarsHold) {
  Generation free = alone({.text = "Once", .options = {.max_new_tokens = 12}});
  ASSERT_GT(free.text.size(), 4u);
  std::string stop = free.text.substr(3, 1);
  State s = run([&](State& s) {
    s += "Once" + gen("a", {.max_new_tokens = 12, .stop = {stop}});
    s += "\nOnce" + gen("d", {.max_new_tokens = 12, .stop_regex = {"(?s)^.{3}"}});
    s += "\nIs it?" + gen("b", {.grammar = GrammarSource::regex("yes|no")});
    s += gen("c", {.grammar = GrammarSource::json_schema(
                       R"({"type": "integer", "minimum": 5, "maximum": 5})")});
  });
  ASSERT_FALSE(s.error()) << s.error()->message;
  EXPECT_EQ(s.get("a").value(), free.text.substr(0, free.text.find(stop)));
  EXPECT_EQ(s.info("a")->matched_stop, stop);
  auto begins_character = [](char c) { return (c & 0xc0) != 0x80; };
  EXPECT_EQ(std::ranges::count_if(s.get("d").value(), begins_character), 3);
  EXPECT_EQ(s.info("d")->matched_stop, "(?s)^.{3}");
  EXPECT_TRUE(s.get("b").value() == "yes" || s.get("b").value() == "no") << s.get("b").value();
  EXPECT_EQ(s.get("c").value(), "5");
}

TEST_F(LlmBackendTest, SelectWeighsByTheModelsLogprobs) {
  std::vector<std::string> choices = {" apple", " a", " zebra crossing"};
  State s = run([&](State& s) {
    s += "I eat" + select("c", choices);
    s += score("p", " and more");
  });
  ASSERT_FALSE(s.error()) << s.error()->message;
  auto sum_behind = [&](const std::string& prompt, const std::string& text, size_t* tokens) {
    auto before = tokenizer_of(*llm_)->encode(prompt, {}).value();
    auto ids = tokenizer_of(*llm_)->encode(prompt + text, {}).value();
    auto logprobs = llm_->score(ids).value();
    size_t common = 0;
    while (common < before.size() && before[common] == ids[common]) ++common;
    double sum = 0;
    for (size_t i = common; i < ids.size(); ++i) sum += *logprobs[i];
    *tokens = ids.size() - common;
    return sum;
  };
  size_t best = 0, tokens = 0;
  CallInfo info = s.info("c").value();
  ASSERT_EQ(info.choices.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    double mean = sum_behind("I eat", choices[i], &tokens) / static_cast<double>(tokens);
    EXPECT_NEAR(info.choices[i].weight, mean, 1e-9) << choices[i];
    if (info.choices[i].weight > info.choices[best].weight) best = i;
  }
  EXPECT_EQ(s.get("c").value(), choices[best]);
  double p = sum_behind("I eat" + choices[best], " and more", &tokens);
  EXPECT_NEAR(std::stod(s.get("p").value()), p, 1e-3);
  EXPECT_EQ(s.info("p")->logprobs.size(), tokens);
}

TEST_F(LlmBackendTest, BranchesFindTheirPrefix) {
  std::string prefix;
  for (int i = 0; i < 40; ++i) prefix += "word " + std::to_string(i) + " ";
  State s = run([&](State& s) {
    s += prefix;
    auto branches = s.fork(3);
    for (int i = 0; i < 3; ++i) {
      branches[i] += std::to_string(i) + gen("v", {.max_new_tokens = 3});
    }
    s.join(branches);
  });
  ASSERT_FALSE(s.error()) << s.error()->message;
  int64_t tokens = static_cast<int64_t>(tokenizer_of(*llm_)->encode(prefix, {})->size());
  for (int i = 0; i < 3; ++i) {
    CallUsage usage = s.info("v[" + std::to_string(i) + "]")->usage;
    EXPECT_GE(usage.cached_tokens, tokens - 16);  // all but a page that is not full
    EXPECT_EQ(s.get("v[" + std::to_string(i) + "]").value(),
              alone({.text = prefix + std::to_string(i), .options = {.max_new_tokens = 3}}).text);
  }
}

TEST_F(LlmBackendTest, MoreProgramsThanTheQueueHoldsWait) {
  Interpreter interpreter(in_process_backend(*llm_), {.threads = 2});
  auto results = interpreter.run_batch(
      40,
      [](State& s, size_t i) {
        s += "Say " + std::to_string(i % 4) + gen("a", {.max_new_tokens = 4});
        s += select("b", {"x", "y", "z"});
      },
      {.run = {.sampling = SamplingParams{.temperature = 0}}, .parallelism = 40});
  ASSERT_TRUE(results);
  for (size_t i = 0; i < 40; ++i) {
    ASSERT_FALSE((*results)[i].error) << (*results)[i].error->message;
    EXPECT_EQ((*results)[i].text, (*results)[i % 4].text);
  }
}

TEST_F(LlmBackendTest, AllOptionsOfAGenReachTheEngine) {
  State adapter = run([](State& s) { s += "x" + gen("a", {.adapter = "poet"}); });
  EXPECT_EQ(adapter.error()->message, "there is no adapter \"poet\"; none is loaded");
  State priority = run([](State& s) { s += "x" + gen("a", {.priority = 3}); });
  EXPECT_TRUE(priority.error()->message.contains("priority 3: the schedule policy is lpm"));
  Generation free = alone({.text = "Once", .options = {.max_new_tokens = 12}});
  std::string stop = free.text.substr(2, 3);
  State kept = run([&](State& s) {
    s += "Once" + gen("a", {.max_new_tokens = 12, .stop = {stop}, .keep_stop = true});
  });
  EXPECT_TRUE(kept["a"].ends_with(stop)) << kept["a"];
  State chosen = run([](State& s) {
    s += "Once" + gen("a", {.max_new_tokens = 2, .logprobs = true, .logprob_token_ids = {7, 9}});
  });
  std::vector<GeneratedToken> tokens = chosen.info("a")->logprobs;
  for (const GeneratedToken& token : tokens) {
    ASSERT_EQ(token.chosen.size(), 2u);
    EXPECT_EQ(token.chosen[0].token, 7);
    EXPECT_LT(token.chosen[0].logprob, 0);
  }
}

TEST_F(LlmBackendTest, MistakesAreTheCallers) {
  EXPECT_NE(run([](State& s) { s += gen("a", {.grammar = GrammarSource::regex("(")}); }).error(),
            std::nullopt);
  State scored = run([](State& s) { s += "x" + gen("a", {.prompt_logprobs_begin = 0}); });
  EXPECT_EQ(scored.error()->message,
            "gen does not support prompt_logprobs_begin; use score() for the logprobs of a text");
  State aged = run([](State& s) { s += "x" + gen("a", {.age_s = 2}); });
  EXPECT_TRUE(aged.error()->message.contains("age_s of a gen is 2"));
  State none = run([](State& s) { s += "x" + gen("a", {.max_new_tokens = -1}); });
  EXPECT_EQ(none.error()->code, ErrorCode::kInvalidArgument);
}

TEST_F(LlmBackendTest, CancellingEndsWhatTheEngineRuns) {
  Interpreter interpreter(in_process_backend(*llm_), {.threads = 1});
  std::vector<State> states;
  for (int i = 0; i < 12; ++i) {  // some run, some are queued, some wait outside
    states.push_back(interpreter.start(
        [](State& s) { s += "Once" + gen("a", {.max_new_tokens = 3000, .ignore_eos = true}); }));
  }
  for (State& s : states) s.cancel();
  for (State& s : states) EXPECT_EQ(s.wait().error().code, ErrorCode::kCancelled);
}

// What an endless cache would have had, token by token: the model's own cache has no more of it.
TEST_F(LlmBackendTest, ReuseIsWhatStoodInPromptsAndAnswersBefore) {
  const Tokenizer& tokenizer = *tokenizer_of(*llm_);
  auto tokens = [&](const std::string& text) { return std::ssize(tokenizer.encode(text).value()); };
  int64_t begin = llm_->engine().stats().prompt_tokens;
  auto meter = std::make_shared<ReuseMeter>(in_process_backend(*llm_));
  std::string first, second;
  {
    Interpreter interpreter(meter, {.threads = 1});
    State s = interpreter.run([&](State& s) {
      s += "Once upon a time" + gen("a", {.max_new_tokens = 40, .ignore_eos = true});
      first = "Once upon a time" + s["a"];
      s += " and" + gen("b", {.max_new_tokens = 2});
      second = first + " and" + s["b"];
      s += select("c", {" yes!", " no!"});
    });
    ASSERT_FALSE(s.error()) << s.error()->message;
  }
  Reuse reuse = meter->reuse(tokenizer).value();
  meter.reset();
  int64_t computed = llm_->engine().stats().prompt_tokens - begin;
  int64_t asked = tokens("Once upon a time") + tokens(first + " and") + tokens(second + " yes!") +
                  tokens(second + " no!");
  EXPECT_EQ(reuse.prompt_tokens, asked);
  // The first prompt is new, each later one goes on from what stood before it.
  EXPECT_GE(reuse.reusable_tokens, 3 * tokens(first) - 6);
  EXPECT_LE(reuse.reusable_tokens, asked - tokens("Once upon a time") - 3);
  EXPECT_LE(asked - computed, reuse.reusable_tokens);
}

TEST_F(LlmBackendTest, EveryWorkloadRunsWhateverTheModelSays) {
  Interpreter interpreter(in_process_backend(*llm_), {.threads = 2});
  for (const Workload& workload : workloads()) {
    SCOPED_TRACE(workload.name);
    auto results = interpreter.run_batch(2, workload.body).value();
    for (const BatchResult& result : results) {
      EXPECT_FALSE(result.error) << result.error->message;
    }
    EXPECT_NE(results[0].text, results[1].text);
    EXPECT_EQ(results[0].usage.calls, results[1].usage.calls);
  }
}

}  // namespace
}  // namespace banyan::llm_backend_test
