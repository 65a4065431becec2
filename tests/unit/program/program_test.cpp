// Programs over a scripted backend: order, concurrency, branches, errors, cancelling.
#include "banyan/program.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "support/scripted_backend.h"
#include "support/shared.h"

namespace banyan::program_test {
namespace {

using test::ScriptedBackend;

// Answers with how many bytes the prompt has.
Result<std::string> count_bytes(const GenCall& call) {
  return std::to_string(call.prompt.text.size());
}

class ProgramTest : public testing::Test {
 protected:
  void script(ScriptedBackend::Script answer, InterpreterOptions options = {.threads = 2}) {
    backend_ = std::make_shared<ScriptedBackend>(std::move(answer));
    interpreter_.emplace(backend_, options);
  }
  void SetUp() override { script(count_bytes); }
  void TearDown() override {
    if (backend_) backend_->resume();
  }

  std::shared_ptr<ScriptedBackend> backend_;
  std::optional<Interpreter> interpreter_;
};

TEST_F(ProgramTest, PrimitivesRunInOrder) {
  State s = interpreter_->run([](State& s) {
    s += "abc" + gen("x") + "-" + gen("y");
    s.set("z", s["x"] + s["y"]);
  });
  EXPECT_EQ(s.text().value(), "abc3-5");
  EXPECT_EQ(s.get("z").value(), "35");
  EXPECT_EQ(s.names(), (std::vector<std::string>{"x", "y", "z"}));
  EXPECT_EQ(s.info("x")->usage.prompt_tokens, 10);
  EXPECT_EQ(s.usage().calls, 2);
  EXPECT_FALSE(s.error());
}

TEST_F(ProgramTest, ControlFlowFollowsWhatWasRead) {
  State s = interpreter_->run([](State& s) {
    s += "a" + gen("n");
    while (s["n"] != "4") s += gen("n");
  });
  EXPECT_EQ(s.text().value(), "a1234");
}

TEST_F(ProgramTest, MessagesFollowTheTemplateAndOnlyGrow) {
  State s = interpreter_->run([](State& s) {
    s += system("S");
    s += user("U");
    s += assistant("A" + gen("x"));
    s += user("V") + assistant(gen("y"));
  });
  EXPECT_EQ(s.text().value(), "<system>S;<user>U;<assistant>A30;<user>V;<assistant>52;");
  EXPECT_EQ(backend_->log()[1], "gen <system>S;<user>U;<assistant>A30;<user>V;<assistant>");
  auto messages = s.messages().value();
  ASSERT_EQ(messages.size(), 5u);
  EXPECT_EQ(messages[2].role, "assistant");
  EXPECT_EQ(messages[2].content, "A30");
}

TEST_F(ProgramTest, BranchesShareThePrefixThatIsComputedFirst) {
  std::string prefix(100, 'p');
  State s = interpreter_->run([&](State& s) {
    s += prefix;
    s += gen("before");
    s += std::string(100, 'q');
    auto branches = s.fork(3);
    for (int i = 0; i < 3; ++i) branches[i] += std::string(i + 1, 'x') + gen("v");
    s.join(branches);
    s += "|" + join_text(branches, "v", ",");
    EXPECT_EQ(branches[2].get("before").value(), "100");
  });
  EXPECT_EQ(s.text().value(), prefix + "100" + std::string(100, 'q') + "|204,205,206");
  EXPECT_EQ(s.get("v[1]").value(), "205");
  EXPECT_FALSE(s.get("before[1]"));  // not the branch's own
  auto log = backend_->log();
  ASSERT_EQ(log.size(), 5u);
  EXPECT_EQ(log[1], "prefill " + prefix + "100" + std::string(100, 'q'));
}

TEST_F(ProgramTest, ForksWithoutHintsComputeNothingFirst) {
  script(count_bytes, {.threads = 1, .fork_hints = false});
  State s = interpreter_->run([](State& s) {
    s += std::string(100, 'p');
    for (State& b : s.fork(2)) b += gen("v");
  });
  EXPECT_EQ(backend_->log().size(), 2u);
  EXPECT_EQ(s.usage().calls, 2);
}

TEST_F(ProgramTest, BranchesDrawFromSeedsOfTheirOwn) {
  script([](const GenCall& call) { return std::to_string(call.sampling->seed); });
  auto program = [](State& s) {
    s += gen("root", {}, SamplingParams{.seed = 5});
    auto branches = s.fork(2);
    for (State& b : branches) b += gen("v", {}, SamplingParams{.seed = 5});
    s.join(branches);
  };
  State s = interpreter_->run(program), again = interpreter_->run(program);
  EXPECT_EQ(s.get("root").value(), "5");
  EXPECT_NE(s.get("v[0]").value(), s.get("v[1]").value());
  EXPECT_NE(s.get("v[0]").value(), "5");
  EXPECT_EQ(s.get("v[0]").value(), again.get("v[0]").value());
}

TEST_F(ProgramTest, CallsSayHowLongAgoTheirProgramBegan) {
  script([](const GenCall& call) { return fmt::format("{}", call.prompt.age_s); });
  State s = interpreter_->run([](State& s) {
    s += gen("first");
    EXPECT_TRUE(s.get("first"));  // the call has been made
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    for (State& b : s.fork(2)) b += gen("later");
    State other = s.fork(1)[0];
    other += gen("last");
    s.set("last", other.get("last").value());
  });
  double first = std::stod(s.get("first").value()), last = std::stod(s.get("last").value());
  EXPECT_GE(first, 0);
  EXPECT_LT(first, 10);
  EXPECT_GE(last, first + 0.02);
}

TEST_F(ProgramTest, CallsOfBranchesAndProgramsRunAtTheSameTime) {
  backend_->pause();
  std::vector<State> states;
  for (int i = 0; i < 4; ++i) {
    states.push_back(interpreter_->start([](State& s) {
      auto branches = s.fork(5);
      for (State& b : branches) b += gen("v");
      s.set("all", join_text(branches, "v"));
    }));
  }
  backend_->wait_for_calls(20);  // of two threads
  backend_->resume();
  for (State& s : states) {
    EXPECT_TRUE(s.wait());
    EXPECT_EQ(s.get("all").value(), "0\n0\n0\n0\n0");
  }
}

TEST_F(ProgramTest, StatesHoldTheirPrefixUntilTheyAreReleased) {
  // A worker lets go just after it has reported that a state is idle.
  auto holds_become = [&](long count) {
    for (int i = 0; i < 5000 && backend_->holds() != count; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return backend_->holds() == count;
  };
  {
    State s = interpreter_->state();
    s += "a" + gen("x");
    ASSERT_TRUE(s.wait());
    EXPECT_EQ(backend_->holds(), 1);
    std::vector<State> branches = s.fork(2);
    for (State& branch : branches) branch += "b" + gen("y");
    for (State& branch : branches) ASSERT_TRUE(branch.wait());
    EXPECT_EQ(backend_->holds(), 3);
    branches[0].release();  // idle
    EXPECT_TRUE(holds_become(2));
    branches.clear();
    EXPECT_TRUE(holds_become(1));

    backend_->pause();
    s += gen("z");
    s.release();  // with a call to come
    backend_->resume();
    ASSERT_TRUE(s.wait());
    EXPECT_TRUE(holds_become(0));
    s += gen("more");
    ASSERT_TRUE(s.wait());
    EXPECT_EQ(backend_->holds(), 1) << "what is added later is held again";
  }
  EXPECT_TRUE(holds_become(0));
  script(count_bytes, {.threads = 2, .keep_prefixes = false});
  State unkept = interpreter_->run([](State& s) { s += gen("x"); });
  EXPECT_EQ(backend_->holds(), 0);
}

TEST_F(ProgramTest, SelectTakesTheLikeliestByEachMethod) {
  // Means: "b" -2, "ad" -2.5, "aaf" -8/3.
  auto pick = [&](const std::string& prompt, ChoiceMethod method) {
    State s = interpreter_->run(
        [&](State& s) { s += prompt + select("c", {"aaf", "ad", "b"}, {.method = method}) + "!"; });
    EXPECT_EQ(s.text().value(), prompt + s.get("c").value() + "!");
    EXPECT_EQ(s.info("c")->choices.size(), 3u);
    return s.get("c").value();
  };
  EXPECT_EQ(pick("", ChoiceMethod::kTokenLengthNormalized), "b");
  // All but "b" begin with the likeliest token; "aaf" goes on with it.
  EXPECT_EQ(pick("", ChoiceMethod::kGreedyTokens), "aaf");
  // The prompt makes "d" likelier: by 1 for one token of two.
  EXPECT_EQ(pick("d", ChoiceMethod::kUnconditionalNormalized), "ad");
}

TEST_F(ProgramTest, ScoreAddsNoText) {
  State s = interpreter_->run([](State& s) { s += "x" + score("p", "ab") + "y"; });
  EXPECT_EQ(s.get("p").value(), "-3");
  EXPECT_EQ(s.info("p")->logprobs.size(), 2u);
  EXPECT_EQ(s.text().value(), "xy");
}

TEST_F(ProgramTest, AnErrorReachesTheReadersOfItsStateAlone) {
  script([](const GenCall& call) -> Result<std::string> {
    if (call.prompt.text.contains("bad")) return invalid_argument("no answer to bad");
    return "fine";
  });
  std::vector<std::string> seen;
  State s = interpreter_->run([&](State& s) {
    s += "p" + gen("before");
    auto branches = s.fork(2);
    branches[0] += "bad" + gen("v") + gen("w");
    branches[1] += "good" + gen("v");
    for (State& b : branches) seen.push_back(b.get("v") ? *b.get("v") : b.get("v").error().message);
    seen.push_back(branches[0].get("w").error().message);
    seen.push_back(branches[0].get("before").value());
    s += gen("after");
  });
  EXPECT_EQ(seen,
            (std::vector<std::string>{"no answer to bad", "fine", "no answer to bad", "fine"}));
  EXPECT_EQ(s.get("after").value(), "fine");
  EXPECT_FALSE(s.error());
}

TEST_F(ProgramTest, AFailedReadEndsTheBody) {
  script([](const GenCall&) -> Result<std::string> { return invalid_argument("no"); });
  bool ended = false;
  State s = interpreter_->run([&](State& s) {
    while (true) {  // or else it would go on for ever
      s += gen("x");
      ended = true;
      if (s["x"] == "done") break;
    }
  });
  EXPECT_TRUE(ended);
  EXPECT_EQ(s.error()->message, "no");
  EXPECT_EQ(s.get("x").error().message, "no");
}

TEST_F(ProgramTest, AnExceptionOfTheBodyIsTheStatesError) {
  State s = interpreter_->run([](State&) { throw std::runtime_error("mine"); });
  EXPECT_EQ(s.error()->message, "the program threw: mine");
}

TEST_F(ProgramTest, MistakesAreNamed) {
  auto error_of = [&](Part part) {
    State s = interpreter_->run([&](State& s) { s += part; });
    return s.error() ? s.error()->message : "none";
  };
  EXPECT_EQ(error_of(image("cat.png")),
            "image \"cat.png\": programs take text only; no model here sees images yet");
  EXPECT_NE(error_of("x" + user("y")).find("before the first message"), std::string::npos);
  EXPECT_NE(error_of(user("y") + "x").find("between messages"), std::string::npos);
  EXPECT_NE(error_of(user("y") + gen("x")).find("outside a message"), std::string::npos);
  EXPECT_NE(error_of(user(user("y"))).find("starts inside a message"), std::string::npos);
  EXPECT_NE(error_of(role_end()).find("role_end()"), std::string::npos);
  EXPECT_EQ(error_of(select("c", {})), "select \"c\": there are no choices");
  EXPECT_EQ(error_of(select("c", {"a", ""})), "select \"c\": a choice is empty");
  State s = interpreter_->run([](State& s) { s += gen("x"); });
  EXPECT_EQ(s.get("y").error().message, "no variable \"y\"; this state has x");
  EXPECT_EQ(s.get("y").error().code, ErrorCode::kNotFound);
}

TEST_F(ProgramTest, CancellingEndsAllOfTheProgramAndNoOther) {
  backend_->pause();
  State s = interpreter_->start([](State& s) {
    auto branches = s.fork(3);
    for (State& b : branches) b += gen("v");
    s += gen("x");
    s += join_text(branches, "v");
  });
  State other = interpreter_->start([](State& s) { s += gen("x"); });
  backend_->wait_for_calls(5);
  s.cancel();
  EXPECT_EQ(s.wait().error().code, ErrorCode::kCancelled);
  EXPECT_EQ(s.get("x").error().code, ErrorCode::kCancelled);
  s += gen("late");
  EXPECT_EQ(s.get("late").error().code, ErrorCode::kCancelled);
  backend_->resume();
  EXPECT_TRUE(other.wait());
}

TEST_F(ProgramTest, AStopTokenCancels) {
  backend_->pause();
  std::stop_source stop;
  State s = interpreter_->start([](State& s) { s += gen("x"); }, {.stop = stop.get_token()});
  backend_->wait_for_calls(1);
  stop.request_stop();
  EXPECT_EQ(s.wait().error().code, ErrorCode::kCancelled);
  State never = interpreter_->run([](State& s) { s += gen("x"); }, {.stop = stop.get_token()});
  EXPECT_EQ(never.error()->code, ErrorCode::kCancelled);
}

TEST_F(ProgramTest, TheInterpretersEndCancelsAndStatesOutliveIt) {
  backend_->pause();
  State s = interpreter_->start([](State& s) {
    s += "t" + gen("x");
    s.set("never", s["x"]);
  });
  backend_->wait_for_calls(1);
  interpreter_.reset();
  EXPECT_EQ(s.get("x").error().code, ErrorCode::kCancelled);
  EXPECT_FALSE(s.has("never"));
  s += gen("y");
  EXPECT_EQ(s.get("y").error().code, ErrorCode::kCancelled);
  EXPECT_EQ(s.text().error().code, ErrorCode::kCancelled);
}

TEST_F(ProgramTest, PiecesComeAsTheyAreMade) {
  script([](const GenCall&) { return "abc"; });
  std::vector<std::string> pieces;
  interpreter_->run([](State& s) { s += gen("x") + select("y", {"de"}); },
                    {.on_text = [&](std::string_view name, std::string_view piece) {
                      pieces.push_back(std::string(name) + "=" + std::string(piece));
                    }});
  EXPECT_EQ(pieces, (std::vector<std::string>{"x=a", "x=b", "x=c", "y=de"}));

  State s = interpreter_->start([](State& s) { s += gen("x"); }, {.stream = true});
  while (!s.has("x")) std::this_thread::yield();
  std::string read;
  size_t offset = 0;
  for (std::string more; !(more = s.read_more("x", &offset).value()).empty();) read += more;
  EXPECT_EQ(read, "abc");
}

TEST_F(ProgramTest, AStateWithoutABodyIsDrivenFromOutside) {
  State s = interpreter_->state();
  s += "ab" + gen("x");
  EXPECT_EQ(s.get("x").value(), "2");
  EXPECT_TRUE(s.wait());
  s += gen("y");
  EXPECT_EQ(s.text().value(), "ab23");
}

TEST_F(ProgramTest, ProgramsMayRunPrograms) {
  State s = interpreter_->run([&](State& s) {
    State inner = interpreter_->run([](State& t) { t += "abcd" + gen("x"); });
    s.set("inner", inner["x"]);
    s.set("text", inner.text().value());
  });
  EXPECT_EQ(s.get("inner").value(), "4");
  EXPECT_EQ(s.get("text").value(), "abcd4");
}

TEST_F(ProgramTest, ThousandsOfBodiesWaitOnTwoThreads) {
  backend_->pause();
  constexpr int kPrograms = 2000;
  std::vector<State> states;
  for (int i = 0; i < kPrograms; ++i) {
    states.push_back(interpreter_->start([i](State& s) {
      s += std::string(static_cast<size_t>(i % 7), 'x') + gen("n");
      s += s["n"];
    }));
  }
  backend_->wait_for_calls(kPrograms);
  backend_->resume();
  for (int i = 0; i < kPrograms; ++i) {
    EXPECT_EQ(states[i].text().value().size(), static_cast<size_t>(i % 7 + 2));
  }
}

// --- batches --------------------------------------------------------------------------------

class BatchTest : public ProgramTest {
 protected:
  // Program i gets the text of i bytes; those in `failing_` get an error.
  std::vector<BatchResult> run(BatchOptions options, size_t count = 20) {
    script([this](const GenCall& call) -> Result<std::string> {
      ++calls_;
      size_t bytes = call.prompt.text.size();
      if (std::ranges::count(failing_, bytes) > 0) return invalid_argument("{} fails", bytes);
      return std::to_string(bytes);
    });
    auto results = interpreter_->run_batch(
        count, [](State& s, size_t i) { s += std::string(i, 'x') + gen("n"); }, options);
    EXPECT_TRUE(results) << results.error().message;
    return results ? *results : std::vector<BatchResult>();
  }

  test::TemporaryFolder folder_;
  std::vector<size_t> failing_;
  std::atomic<int> calls_ = 0;
};

TEST_F(BatchTest, ResultsAreInTheirPlacesAndProgressIsTold) {
  failing_ = {3};
  std::vector<BatchProgress> told;
  auto results =
      run({.parallelism = 4, .progress = [&](const BatchProgress& p) { told.push_back(p); }});
  ASSERT_EQ(results.size(), 20u);
  for (size_t i = 0; i < 20; ++i) {
    if (i == 3) continue;
    EXPECT_EQ(results[i].get("n").value(), std::to_string(i));
    EXPECT_EQ(results[i].text, std::string(i, 'x') + std::to_string(i));
  }
  EXPECT_EQ(results[3].error->message, "3 fails");
  EXPECT_EQ(results[3].get("n").error().message, "3 fails");
  ASSERT_FALSE(told.empty());
  EXPECT_EQ(told.back().done, 20u);
  EXPECT_EQ(told.back().failed, 1u);
}

TEST_F(BatchTest, GoesOnFromItsOutputFile) {
  std::string path = folder_.path() + "/out.jsonl";
  BatchOptions options{.output_path = path,
                       .input_key = [](size_t i) { return "input " + std::to_string(i); }};
  failing_ = {5, 6};
  run(options);
  EXPECT_EQ(calls_, 20);
  failing_ = {};
  // As after a crash: the last line is cut off.
  std::string text = read_file(path).value();
  std::string last = text.substr(text.rfind('\n', text.size() - 2) + 1);
  folder_.write("out.jsonl", text.substr(0, text.size() - 9));
  calls_ = 0;
  auto results = run(options);
  bool lost_good = !last.contains("fails");
  EXPECT_EQ(calls_, lost_good ? 3 : 2);
  for (size_t i = 0; i < 20; ++i) EXPECT_EQ(results[i].get("n").value(), std::to_string(i));
  calls_ = 0;
  run(options);
  EXPECT_EQ(calls_, 0);
}

TEST_F(BatchTest, NothingBeginsAfterAStop) {
  std::stop_source stop;
  std::atomic<int> begun = 0;
  BatchProgress last;
  BatchOptions options{.run = {.stop = stop.get_token()},
                       .parallelism = 1,
                       .progress = [&](const BatchProgress& p) { last = p; },
                       .output_path = folder_.path() + "/out.jsonl"};
  auto run_with = [&](const BatchOptions& with) {
    auto body = [&](State& s, size_t i) {
      ++begun;
      s += std::string(i, 'x') + gen("n");
      if (s["n"] == "2") stop.request_stop();
    };
    return interpreter_->run_batch(20, body, with).value();
  };
  auto results = run_with(options);
  EXPECT_EQ(begun, 3);
  EXPECT_EQ(results[2].get("n").value(), "2");
  for (size_t i = 3; i < 20; ++i) EXPECT_EQ(results[i].error->code, ErrorCode::kCancelled);
  EXPECT_EQ(last.done, 20u);
  EXPECT_EQ(last.failed, 17u);
  options.run.stop = {};
  EXPECT_EQ(run_with(options)[19].get("n").value(), "19");
  EXPECT_EQ(begun, 20) << "the three that were done are not run again";
}

TEST_F(BatchTest, RefusesAFileOfOtherInputs) {
  std::string path = folder_.path() + "/out.jsonl";
  auto nothing = [](State&, size_t) {};
  auto run_with = [&](size_t count, const std::string& key) {
    auto result = interpreter_->run_batch(
        count, nothing, {.output_path = path, .input_key = [key](size_t) { return key; }});
    return result ? "" : result.error().message;
  };
  EXPECT_EQ(run_with(3, "a"), "");
  EXPECT_TRUE(run_with(3, "b").contains("had another input")) << run_with(3, "b");
  EXPECT_TRUE(run_with(2, "a").contains("this batch has 2 inputs")) << run_with(2, "a");
  folder_.write("out.jsonl", "my diary");
  EXPECT_TRUE(run_with(3, "a").contains("not the results of a batch"));
  EXPECT_EQ(read_file(path).value(), "my diary");
}

TEST_F(BatchTest, InputsOfAnyTypeAndSeedsOfTheirOwn) {
  script([](const GenCall& call) { return std::to_string(call.sampling->seed); });
  std::vector<std::string> inputs = {"a", "a", "b"};
  auto results = interpreter_->run_batch(
      inputs, [](State& s, const std::string& input) { s += input + gen("seed"); },
      {.run = {.sampling = SamplingParams()}});
  ASSERT_TRUE(results);
  EXPECT_EQ((*results)[0].get("seed").value(), "0");
  EXPECT_NE((*results)[0].get("seed").value(), (*results)[1].get("seed").value());
}

}  // namespace
}  // namespace banyan::program_test
