// Programs on a running server, through real sockets.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>

#include "banyan/program.h"
#include "cli/serving_program.h"

namespace banyan::programs_test {
namespace {

using test::ServingProgram;
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
  std::string model = test::nano_model();
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

// A batch whose server is killed midway keeps its results, reports an error for the rest, and
// continues from its file on another server.
TEST(ProgramsOverHttp, ABatchOutlivesItsServer) {
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

// A port that accepts connections and sends nothing, so that a test knows when a client waits
// there.
class SilentServer {
 public:
  SilentServer() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* any = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(socket_, any, size), 0);
    EXPECT_EQ(listen(socket_, 8), 0);
    EXPECT_EQ(getsockname(socket_, any, &size), 0);
    url = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  }
  ~SilentServer() { close(socket_); }
  bool wait_for_client() const {
    pollfd watched{socket_, POLLIN, 0};
    return poll(&watched, 1, 60'000) == 1;
  }

  std::string url;

 private:
  int socket_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
};

// The output of a benchmark that is interrupted while it waits for its peer.
test::ProgramResult interrupted_bench(std::vector<std::string> more) {
  SilentServer peer;
  TemporaryFolder folder;
  std::string out = folder.write("out", ""), err = folder.write("err", "");
  std::vector<std::string> words = {
      "bench",      "programs", "--model",      test::source_path("models/banyan-nano"),
      "--threads",  "1",        "--instances",  "1",
      "--peer-url", peer.url,   "--peer-model", "x"};
  words.insert(words.end(), more.begin(), more.end());
  test::OpenFile stdout_file(out, O_WRONLY), stderr_file(err, O_WRONLY);
  pid_t child = test::start_program(words, -1, stdout_file.descriptor(), stderr_file.descriptor());
  EXPECT_TRUE(peer.wait_for_client());
  kill(child, SIGINT);
  int status = 0;
  waitpid(child, &status, 0);
  return {test::exit_code_of(status), read_file(out).value(), read_file(err).value()};
}

TEST(BenchPrograms, InterruptPrintsWhatIsMeasured) {
  test::ProgramResult table =
      interrupted_bench({"--programs", "few_shot", "--settings", "all,no-radix-cache"});
  EXPECT_EQ(table.exit_code, 130);
  EXPECT_TRUE(table.out.contains("programs/s")) << table.out;
  EXPECT_TRUE(table.out.contains("no-radix-cache: x")) << "the means: " << table.out;
  // Sanitizers may print warnings about fibers before it.
  EXPECT_TRUE(table.err.ends_with("banyan: interrupted; not measured:\n  peer: few_shot\n"))
      << table.err;

  test::ProgramResult json =
      interrupted_bench({"--programs", "choices,few_shot", "--settings", "all", "--json"});
  EXPECT_EQ(json.exit_code, 130);
  EXPECT_TRUE(json.err.ends_with("banyan: interrupted; not measured:\n  peer: every program\n"))
      << json.err;
  Result<Json> parsed = parse_json(json.out, "stdout");
  ASSERT_TRUE(parsed) << json.out;
  std::vector<std::string> measured;
  for (const Json& row : (*parsed)["results"]) {
    EXPECT_FALSE(row.contains("error")) << row;
    measured.push_back(row["workload"].get<std::string>());
  }
  EXPECT_EQ(measured, (std::vector<std::string>{"choices", "few_shot"}));
}

TEST(BenchPrograms, InterruptEndsWhatRuns) {
  TemporaryFolder folder;
  std::string out = folder.write("out", ""), err = folder.write("err", "");
  test::OpenFile stdout_file(out, O_WRONLY), stderr_file(err, O_WRONLY);
  pid_t child = test::start_program(
      {"bench", "programs", "--model", test::source_path("models/banyan-nano"), "--threads", "1",
       "--instances", "20000", "--programs", "judge", "--settings", "all"},
      -1, stdout_file.descriptor(), stderr_file.descriptor());
  test::wait_until_it_catches_interrupts(child);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // the model is loaded
  kill(child, SIGINT);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(test::exit_code_of(status), 130);
  EXPECT_EQ(read_file(out).value(), "");
  std::string said = read_file(err).value();
  EXPECT_TRUE(said.ends_with("banyan: interrupted; not measured:\n  all: judge\n")) << said;
}

TEST(BenchPrograms, APeerThatIsNotThereLosesNothing) {
  test::ProgramResult result =
      test::run_program({"bench", "programs", "--model", test::source_path("models/banyan-nano"),
                         "--threads", "1", "--instances", "1", "--programs", "few_shot",
                         "--settings", "all", "--peer-url", "http://127.0.0.1:9"});
  EXPECT_NE(result.exit_code, 0);
  EXPECT_TRUE(result.out.contains("programs/s")) << result.out;
  EXPECT_TRUE(result.err.contains("http://127.0.0.1:9")) << result.err;
}

}  // namespace
}  // namespace banyan::programs_test
