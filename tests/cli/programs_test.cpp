// Programs on a server that people run, through real sockets.
#include <gtest/gtest.h>

#include <algorithm>

#include "banyan/program.h"
#include "cli/serving_program.h"

namespace banyan {
namespace {

using test::ServingProgram;
using test::shared_path;
using test::TemporaryFolder;

RunOptions greedy() {
  return {.sampling = SamplingParams{.temperature = 0}};
}

void branches(State& s) {
  s += "Once upon a time, in a small house behind the hill, there was a cat" +
       gen("a", {.max_new_tokens = 12}) + ".";
  std::vector<State> forks = s.fork(2);
  forks[0] += " One day" + gen("b", {.max_new_tokens = 10, .stop = {"."}});
  forks[1] += " At night" + gen("b", {.max_new_tokens = 10});
  s += join_text(forks, "b", ";") + select("c", {" The end", " Or not"});
}

TEST(ProgramsOverHttp, TheServersApisGiveWhatTheModelGives) {
  REQUIRE_SHARED("models/stories260K");
  std::string model = shared_path("models/stories260K");
  std::string here;
  {
    auto llm = Llm::load({.model_path = model, .threads = 1}).value();
    Interpreter interpreter(in_process_backend(*llm));
    here = interpreter.run(branches, greedy()).text().value();
  }
  ServingProgram server(model);
  for (RemoteApi api : {RemoteApi::kGenerate, RemoteApi::kCompletions}) {
    Interpreter interpreter(connect_backend(server.url, {.api = api}).value());
    State s = interpreter.run(branches, greedy());
    EXPECT_EQ(s.text().value_or(s.error() ? s.error()->message : "no text"), here);
  }
}

// A batch whose server is killed in the middle keeps what came, says of the rest what happened, and
// goes on from its file on another server.
TEST(ProgramsOverHttp, ABatchOutlivesItsServer) {
  REQUIRE_SHARED("models/stories260K");
  TemporaryFolder folder;
  test::make_endless_model(folder);
  constexpr size_t kCount = 12;
  auto program = [](State& s, size_t index) {
    s += "Story " + std::to_string(index) + ":" +
         gen("a", {.max_new_tokens = 200, .ignore_eos = true}) + "\n" +
         gen("b", {.max_new_tokens = 100, .ignore_eos = true});
  };
  BatchOptions options{.run = greedy(),
                       .parallelism = 3,
                       .output_path = folder.path() + "/out.jsonl",
                       .input_key = [](size_t i) { return std::to_string(i); }};
  auto run_on = [&](ServingProgram& server, BatchOptions with) {
    Interpreter interpreter(connect_backend(server.url).value());
    return interpreter.run_batch(kCount, program, std::move(with)).value();
  };

  ServingProgram first(folder.path(), {"--load-format", "dummy"});
  BatchOptions killing = options;
  killing.progress = [&](const BatchProgress& p) {
    if (p.done >= 3) first.end(SIGKILL);
  };
  std::vector<BatchResult> cut = run_on(first, killing);
  auto failed = std::ranges::count_if(cut, [](const BatchResult& r) { return bool(r.error); });
  EXPECT_GE(failed, 1);
  EXPECT_LE(failed, std::ssize(cut) - 3);
  for (const BatchResult& r : cut) {
    if (!r.error) continue;
    EXPECT_TRUE(r.error->message.contains(first.url)) << r.error->message;
  }

  ServingProgram second(folder.path(), {"--load-format", "dummy"});
  size_t skipped = 0;
  BatchOptions going_on = options;
  going_on.progress = [&](const BatchProgress& p) { skipped = p.skipped; };
  std::vector<BatchResult> whole = run_on(second, going_on);
  EXPECT_EQ(skipped, kCount - static_cast<size_t>(failed));
  BatchOptions anew = options;
  anew.output_path.clear();
  std::vector<BatchResult> fresh = run_on(second, anew);
  for (size_t i = 0; i < kCount; ++i) {
    EXPECT_FALSE(whole[i].error) << whole[i].error->message;
    EXPECT_EQ(whole[i].text, fresh[i].text);
  }
}

}  // namespace
}  // namespace banyan
