// Programs through the endpoints of a server, without sockets: the answers are the real endpoints'.
#include "program/remote/backend.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "server/openai/endpoints.h"
#include "server/sglang/endpoints.h"
#include "support/api.h"

namespace banyan::remote_backend_test {
namespace {

constexpr const char* kTemplate =
    "<s>{% for m in messages %}<{{ m.role }}>{{ m.content }};{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}";

class RemoteBackendTest : public testing::Test {
 protected:
  // Asks the endpoint at the path, on the thread that sends.
  Transport endpoints() {
    return [this](ClientRequest request, ClientSinks sinks) {
      Json body = Json::parse(request.body);
      for (const char* name : {"text", "prompt"}) {
        if (body.contains(name) && body[name].is_string()) prompts_.push_back(body[name]);
      }
      Planner planner = request.path == "/generate"         ? plan_generate
                        : request.path == "/v1/completions" ? plan_completion
                                                            : plan_chat;
      std::string answer = test::ask(*llm_, planner, request.body);
      bool refused = answer.starts_with("error ");
      sinks.body(refused ? 400 : 200, answer);
      sinks.end(refused ? 400 : 200, {});
      return [] {};
    };
  }

  State run(RemoteStyle style, const Interpreter::Body& body, RunOptions options = {}) {
    style.model = "tiny";
    RemoteOptions remote{.name = "the server", .style = style, .chat_template = {}, .special = {}};
    if (style.api != ServingApi::kChat) {
      remote.chat_template = ChatTemplate::parse(kTemplate).value();
      remote.special.named["bos_token"] = "<s>";  // which the server adds
    }
    options.sampling = SamplingParams{.temperature = 0};
    prompts_.clear();
    Interpreter interpreter(remote_backend(endpoints(), std::move(remote)), {.threads = 1});
    State state = interpreter.run(body, options);
    text_ = state.text().value_or("");
    return state;
  }
  State run_in_process(const Interpreter::Body& body) {
    Interpreter interpreter(in_process_backend(*llm_), {.threads = 1});
    State state = interpreter.run(body, {.sampling = SamplingParams{.temperature = 0}});
    text_ = state.text().value_or("");
    return state;
  }

  std::unique_ptr<Llm> llm_ = test::tiny_llm(
      kTemplate, {.radix_cache = true, .ends = true, .vocabulary = 800, .context = 4096});
  std::vector<std::string> prompts_;
  std::string text_;
};

TEST_F(RemoteBackendTest, PlainTextIsTheSameOnEveryApiThatTakesIt) {
  auto program = [](State& s) {
    s += "Once" + gen("a", {.max_new_tokens = 6});
    auto branches = s.fork(2);
    branches[0] += " one" + gen("b", {.max_new_tokens = 4, .stop = {"q"}, .logprobs = true});
    branches[1] += " two" + gen("b", {.grammar = GrammarSource::regex("yes|no")});
    s.join(branches);
    s += select("c", {" x", " yz", " w"});
    s += score("p", " end");
  };
  State here = run_in_process(program);
  ASSERT_FALSE(here.error()) << here.error()->message;
  std::string text = text_;
  for (ServingApi api : {ServingApi::kSglang, ServingApi::kCompletions}) {
    State s = run({.api = api}, program);
    ASSERT_FALSE(s.error()) << s.error()->message;
    EXPECT_EQ(text_, text);
    for (const char* name : {"a", "b[0]", "b[1]", "c"}) {
      EXPECT_EQ(s.get(name).value(), here.get(name).value()) << name;
      EXPECT_EQ(s.info(name)->finish, here.info(name)->finish) << name;
    }
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_NEAR(s.info("c")->choices[i].weight, here.info("c")->choices[i].weight, 1e-4);
    }
    EXPECT_NEAR(std::stod(s.get("p").value()), std::stod(here.get("p").value()), 1e-3);
    EXPECT_EQ(s.info("a")->usage.prompt_tokens, here.info("a")->usage.prompt_tokens);
    EXPECT_EQ(s.info("a")->usage.completion_tokens, here.info("a")->usage.completion_tokens);
    EXPECT_EQ(s.info("b[0]")->logprobs.size(), here.info("b[0]")->logprobs.size());
  }
}

TEST_F(RemoteBackendTest, MessagesAreTheSameOnEveryApi) {
  auto program = [](State& s) {
    s += system("Be brief") + user("Hi");
    s += assistant(gen("a", {.max_new_tokens = 5}));
    s += user("More");
    s += assistant("Well, " + gen("b", {.max_new_tokens = 5}));
  };
  State here = run_in_process(program);
  ASSERT_FALSE(here.error()) << here.error()->message;
  for (ServingApi api : {ServingApi::kSglang, ServingApi::kCompletions, ServingApi::kChat}) {
    State s = run({.api = api, .continues_answers = true}, program);
    ASSERT_FALSE(s.error()) << s.error()->message;
    if (api == ServingApi::kChat) {
      EXPECT_EQ(s.get("a").value(), here.get("a").value());
      EXPECT_EQ(s.get("b").value(), here.get("b").value());
      continue;
    }
    // The tokenizer of the tests ends every text with </s>, so that answers differ.
    std::string first = "<system>Be brief;<user>Hi;<assistant>";
    std::string second = first + s.get("a").value() + ";<user>More;<assistant>Well, ";
    EXPECT_EQ(prompts_, (std::vector<std::string>{first, second}));
    EXPECT_EQ(text_, second + s.get("b").value() + ";");
  }
}

TEST_F(RemoteBackendTest, UnconditionalChoicesNeedTokensAsPrompts) {
  auto program = [](State& s) {
    s += "I eat" + select("c", {" apples", " a", " zebras"},
                          {.method = ChoiceMethod::kUnconditionalNormalized});
  };
  State here = run_in_process(program), s = run({.api = ServingApi::kSglang}, program);
  ASSERT_FALSE(s.error()) << s.error()->message;
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(s.info("c")->choices[i].weight, here.info("c")->choices[i].weight, 1e-4);
  }
  EXPECT_EQ(run({.api = ServingApi::kCompletions}, program).error()->code, ErrorCode::kUnsupported);
}

TEST_F(RemoteBackendTest, PiecesComeFromStreams) {
  for (ServingApi api : {ServingApi::kSglang, ServingApi::kCompletions, ServingApi::kChat}) {
    int pieces = 0;
    std::string joined;
    State s = run({.api = api},
                  [](State& s) {
                    s +=
                        user("Hi") + assistant(gen("a", {.max_new_tokens = 8, .ignore_eos = true}));
                  },
                  {.on_text = [&](std::string_view, std::string_view piece) {
                    ++pieces;
                    joined += piece;
                  }});
    ASSERT_FALSE(s.error()) << s.error()->message;
    EXPECT_EQ(joined, s.get("a").value());
    EXPECT_GT(pieces, 1);
    EXPECT_EQ(s.info("a")->finish, FinishReason::kLength);
    EXPECT_EQ(s.usage().completion_tokens, 8);
  }
}

TEST_F(RemoteBackendTest, WhatABackendCannotDoIsNamed) {
  auto error_of = [&](RemoteStyle style, Part part) {
    State s = run(style, [&](State& s) { s += part; });
    return s.error() ? s.error()->message : "none";
  };
  RemoteStyle chat{.api = ServingApi::kChat}, native{.api = ServingApi::kSglang};
  EXPECT_TRUE(error_of(chat, "plain" + gen("a")).contains("the server takes messages only"));
  EXPECT_TRUE(error_of(chat, user("x") + assistant(select("c", {"a", "b"})))
                  .contains("the server does not return prompt logprobs"));
  EXPECT_TRUE(error_of(chat, user("x") + assistant("Well" + gen("a")))
                  .contains("cannot continue a partial assistant message (\"Well\")"));
  EXPECT_TRUE(error_of(chat, user("x" + gen("a"))).contains("answers as the assistant only"));
  EXPECT_TRUE(error_of(native, "x" + gen("a", {.top_logprobs = 2})).contains("top_logprobs"));
  EXPECT_TRUE(error_of(native, "x" + gen("a", {.timeout_s = 2})).contains("timeout_s"));
  EXPECT_TRUE(error_of(native, "x" + gen("a", {.adapter = "poet"})).contains("poet"));
  std::string refused = error_of(native, "x" + gen("a", {.max_new_tokens = -7}));
  EXPECT_TRUE(refused.starts_with("the server answers 400: ")) << refused;
  EXPECT_TRUE(refused.contains("-7")) << refused;
}

// --- API speculative execution --------------------------------------------------------------

// A completions endpoint whose model goes on with one story, word by word.
class SpeculationTest : public testing::Test {
 protected:
  static constexpr std::string_view kStory =
      "Hero?\nName: Ada\nJob: baker of bread\nAge: 41\nThe end, at last";

  Transport story(bool logprobs) {
    return [this, logprobs](ClientRequest request, ClientSinks sinks) {
      Json body = Json::parse(request.body);
      std::string prompt = body["prompt"];
      size_t known = 0;
      while (known < prompt.size() && known < kStory.size() && prompt[known] == kStory[known]) {
        ++known;
      }
      // After a prompt that is not the story's it says so.
      std::string_view rest = known == prompt.size() ? kStory.substr(known) : " I am lost\n";
      Json tokens = Json::array(), values = Json::array();
      std::string text;
      int64_t most = body["max_tokens"];
      std::string finish = "stop";
      while (!rest.empty()) {
        if (static_cast<int64_t>(tokens.size()) == most) {
          finish = "length";
          break;
        }
        size_t end = std::min(rest.find_first_of(" \n", 1), rest.size());
        tokens.push_back(std::string(rest.substr(0, end)));
        values.push_back(-1);
        text += rest.substr(0, end);
        rest.remove_prefix(end);
        size_t stop = body.contains("stop") ? text.find(body["stop"][0].get<std::string>())
                                            : std::string::npos;
        if (stop == text.npos) continue;
        text.resize(stop);
        break;
      }
      ++calls_;
      if (!body.contains("stop")) ++longer_calls_;
      prompt_bytes_ += prompt.size();
      Json choice = {{"text", text}, {"finish_reason", finish}};
      if (logprobs) choice["logprobs"] = {{"tokens", tokens}, {"token_logprobs", values}};
      Json answer = {
          {"choices", {choice}},
          {"usage", {{"prompt_tokens", prompt.size() / 4}, {"completion_tokens", tokens.size()}}}};
      sinks.body(200, answer.dump());
      sinks.end(200, {});
      return [] {};
    };
  }

  // The last of `times` runs, one after another.
  State run(const Interpreter::Body& body, int64_t tokens, bool logprobs = true, int times = 1) {
    calls_ = longer_calls_ = prompt_bytes_ = 0;
    RemoteOptions remote{.name = "the story",
                         .style = {.api = ServingApi::kCompletions, .model = "m"},
                         .chat_template = {},
                         .special = {}};
    Interpreter interpreter(remote_backend(story(logprobs), std::move(remote)), {.threads = 1});
    for (int i = 1; i < times; ++i) interpreter.run(body, {.speculation_tokens = tokens});
    State state = interpreter.run(body, {.speculation_tokens = tokens});
    text_ = state.text().value_or(state.error() ? state.error()->message : "");
    return state;
  }

  static GenerationOptions line(int64_t most = 8) {
    return {.max_new_tokens = most, .stop = {"\n"}};
  }

  size_t calls_ = 0, longer_calls_ = 0, prompt_bytes_ = 0;
  std::string text_;
};

TEST_F(SpeculationTest, OneCallServesTheGensThatItWrote) {
  auto program = [](State& s) {
    s += "Hero?\nName:" + gen("name", line()) + "\nJob:" + gen("job", line()) +
         "\nAge:" + gen("age", line());
  };
  State plain = run(program, 0);
  std::string text = text_;
  EXPECT_EQ(calls_, 3u);
  size_t bytes = prompt_bytes_;
  State s = run(program, 40);
  EXPECT_EQ(calls_, 1u);
  EXPECT_EQ(text_, text);
  EXPECT_EQ(text_, "Hero?\nName: Ada\nJob: baker of bread\nAge: 41");
  EXPECT_EQ(s.get("job").value(), " baker of bread");
  EXPECT_EQ(s.info("job")->matched_stop, "\n");
  EXPECT_EQ(s.usage().calls, 1);
  EXPECT_EQ(s.usage().calls_saved, 2);
  EXPECT_GT(s.usage().prompt_tokens_saved, 2 * s.usage().prompt_tokens);
  EXPECT_GE(bytes, 3 * prompt_bytes_);
}

// Without logprobs, too: then what the model wrote in between is estimated.
TEST_F(SpeculationTest, TokensSavedAreThoseOfThePromptsThatWereNotSent) {
  auto program = [](State& s) {
    s += "Hero?\nName:" + gen("name", line()) + "\nJob:" + gen("job", line(30)) +
         "\nAge:" + gen("age", line());
  };
  auto plain = static_cast<double>(run(program, 0).usage().prompt_tokens);
  for (bool logprobs : {true, false}) {
    CallUsage usage = run(program, 40, logprobs).usage();
    EXPECT_EQ(usage.calls_saved, 2);
    auto both = static_cast<double>(usage.prompt_tokens + usage.prompt_tokens_saved);
    // Tokens of what is written are words here, of prompts four bytes.
    EXPECT_NEAR(both, plain, 0.25 * plain) << logprobs;
  }
}

TEST_F(SpeculationTest, GoesOnWhereItSavesCalls) {
  auto program = [](State& s) {
    s += "Hero?\nName:" + gen("name", line()) + "\nJob:" + gen("job", line()) +
         "\nAge:" + gen("age", line());
  };
  run(program, 40, true, 30);
  EXPECT_EQ(calls_, 30u);
  EXPECT_EQ(longer_calls_, 30u);
}

// Nobody knows that " I am lost" has three tokens, so the call that ran further is made again.
TEST_F(SpeculationTest, StopsWhereCallsHaveToBeMadeAgain) {
  auto program = [](State& s) {
    for (int i = 0; i < 6; ++i) s += "Question " + std::to_string(i) + ":" + gen("a", line(3));
  };
  run(program, 0, false);
  EXPECT_EQ(calls_, 6u);
  std::string text = text_;
  run(program, 40, false);
  EXPECT_EQ(calls_, 7u);
  EXPECT_EQ(text_, text);
  run(program, 40, false, 20);  // 120 gens: tries again after 16, 32 and 64
  EXPECT_EQ(longer_calls_, 4u);
  EXPECT_EQ(calls_, 124u);
}

TEST_F(SpeculationTest, StopsWhereNothingIsUsedOfWhatCame) {
  auto program = [](State& s) { s += "Hero?\nName:" + gen("name", line()); };
  run(program, 40, true, 19);
  EXPECT_EQ(longer_calls_, 3u);
  EXPECT_EQ(calls_, 19u);
  EXPECT_EQ(text_, "Hero?\nName: Ada");
}

TEST_F(SpeculationTest, OtherTextMeansAnotherCall) {
  auto program = [](State& s) {
    s += "Hero?\nName:" + gen("name", line()) + "\nTown:" + gen("town", line()) +
         "\nAge:" + gen("age", line());
  };
  run(program, 0);
  std::string text = text_;
  State s = run(program, 40);
  EXPECT_EQ(text_, text);
  EXPECT_EQ(s.get("town").value(), " I am lost");
  EXPECT_EQ(calls_, 3u);
}

TEST_F(SpeculationTest, AGensOwnLimitsHold) {
  for (bool logprobs : {true, false}) {  // without, nobody knows where tokens end
    for (int64_t most : {1, 2, 3, 4, 5, 50}) {
      auto program = [most](State& s) {
        s += "Hero?\nName:" + gen("name", line(most)) + "\nJob:" + gen("job", line(most)) +
             "\nAge: 41\nThe" + gen("rest", {.max_new_tokens = most});
      };
      State plain = run(program, 0, logprobs);
      std::string text = text_;
      State s = run(program, 40, logprobs);
      EXPECT_EQ(text_, text) << most;
      for (const char* name : {"name", "job", "rest"}) {
        EXPECT_EQ(s.info(name)->finish, plain.info(name)->finish) << name << " " << most;
      }
      EXPECT_LE(calls_, logprobs ? 3u : 4u) << most;
    }
  }
}

TEST_F(SpeculationTest, GrammarsAndLogprobsAreCallsOfTheirOwn) {
  GenerationOptions logprobs = line();
  logprobs.logprobs = true;
  State s = run(
      [&](State& s) {
        s += "Hero?\nName:" + gen("name", line()) + "\nJob:" + gen("job", logprobs);
      },
      40);
  EXPECT_EQ(calls_, 2u);
  EXPECT_EQ(s.get("job").value(), " baker of bread");
  EXPECT_FALSE(s.info("job")->logprobs.empty());
  EXPECT_TRUE(s.info("name")->logprobs.empty());
}

}  // namespace
}  // namespace banyan::remote_backend_test
