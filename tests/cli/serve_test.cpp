// banyan serve as users start and stop it.
#include <fmt/format.h>

#include <thread>

#include "api/client.h"
#include "base/json.h"
#include "cli/program.h"
#include "support/models/tiny_model.h"

namespace banyan::serve_test {
namespace {

using test::Client;
using test::Response;
using test::run_program;

// A server in a process of its own.
class Serving {
 public:
  explicit Serving(std::vector<std::string> arguments = {}) {
    log_ = model_.write("log", "");
    test::OpenFile log(log_, O_WRONLY);
    start(std::move(arguments), 0, log.descriptor());
    port_ = std::atoi(after("banyan: ready on http://127.0.0.1:").c_str());
  }
  // Starts a server that logs to `stderr_descriptor` (-1: none) and waits until it is ready.
  Serving(std::vector<std::string> arguments, int stderr_descriptor) : port_(free_port()) {
    start(std::move(arguments), port_, stderr_descriptor);
    for (int i = 0; i < test::kPatienceMs && client().get("/health").status != 200; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  ~Serving() {
    if (child_ <= 0) return;
    kill(SIGKILL);
    wait();
  }

  int port() const { return port_; }
  const std::string& model() const { return model_.path(); }
  Client client() const { return Client(port_); }
  std::string log() const { return read_file(log_).value(); }
  void kill(int signal) const { ::kill(child_, signal); }
  int wait() {
    int status = 0;
    waitpid(std::exchange(child_, -1), &status, 0);
    return test::exit_code_of(status);
  }

  // What follows `text` in the log, once it is there; empty if the server has ended.
  std::string after(std::string_view text) const {
    for (int i = 0; i < test::kPatienceMs; ++i) {
      std::string all = log();
      if (size_t at = all.find(text); at != all.npos) return all.substr(at + text.size());
      if (waitid(P_PID, static_cast<id_t>(child_), nullptr, WEXITED | WNOHANG | WNOWAIT) != 0)
        break;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return "";
  }

 private:
  void start(std::vector<std::string> arguments, int port, int stderr_descriptor) {
    test::tiny_model(model_);
    std::vector<std::string> words = {
        "serve", "--model-path", model_.path(),       "--load-format", "dummy", "--threads",
        "1",     "--port",       std::to_string(port)};
    words.insert(words.end(), arguments.begin(), arguments.end());
    child_ = fork();
    if (child_ != 0) return;
    if (stderr_descriptor < 0) {
      close(STDERR_FILENO);
    } else {
      dup2(stderr_descriptor, STDERR_FILENO);
    }
    alarm(60);
    test::become_program(words);
  }

  static int free_port() {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof address;
    int probe = socket(AF_INET, SOCK_STREAM, 0);
    bind(probe, reinterpret_cast<sockaddr*>(&address), bytes);
    getsockname(probe, reinterpret_cast<sockaddr*>(&address), &bytes);
    close(probe);
    return ntohs(address.sin_port);
  }

  test::TemporaryFolder model_;
  std::string log_;
  pid_t child_ = -1;
  int port_ = 0;
};

std::string stream_of(int tokens) {
  std::string body = fmt::format(
      R"({{"input_ids":[1,2,3],"stream":true,"sampling_params":{{"max_new_tokens":{}}}}})", tokens);
  return fmt::format("POST /generate HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{}",
                     body.size(), body);
}

TEST(Serve, AnswersAndEndsWhenTold) {
  Serving server;
  ASSERT_NE(server.port(), 0) << server.log();
  Response models = server.client().get("/v1/models");
  EXPECT_EQ(models.status, 200);
  EXPECT_NE(models.body.find(server.model()), models.body.npos);
  server.kill(SIGTERM);
  EXPECT_EQ(server.wait(), 0);
}

TEST(Serve, RunningStreamsFinishAfterSigterm) {
  Serving server({"--decode-log-interval", "1"});
  Client client = server.client();
  client.send(stream_of(3000));
  ASSERT_NE(server.after("Decode batch"), "");
  server.kill(SIGTERM);
  EXPECT_TRUE(client.read_until("data: [DONE]\n\n").ends_with("data: [DONE]\n\n"));
  EXPECT_EQ(server.wait(), 0);
}

TEST(Serve, ASecondSignalEndsAtOnce) {
  Serving server({"--decode-log-interval", "1"});
  Client client = server.client();
  client.send(stream_of(200000));
  ASSERT_NE(server.after("Decode batch"), "");
  server.kill(SIGINT);
  EXPECT_NE(server.after("a second signal exits immediately"), "");
  server.kill(SIGINT);
  EXPECT_EQ(server.wait(), 130);
}

// Issue 17: a stderr pipe that nobody reads blocked requests, /health and SIGTERM; a closed or full
// stderr ended the server at startup.
void expect_service(std::string_view what, int stderr_descriptor) {
  Serving server({"--log-requests", "--decode-log-interval", "1", "--enable-metrics"},
                 stderr_descriptor);
  for (int i = 0; i < 3; ++i) {
    Client client = server.client();
    client.send(stream_of(100));
    EXPECT_TRUE(client.read_until("data: [DONE]\n\n").ends_with("data: [DONE]\n\n")) << what;
  }
  EXPECT_EQ(server.client().get("/health").status, 200) << what;
  server.kill(SIGTERM);
  EXPECT_EQ(server.wait(), 0) << what;
}

TEST(Serve, AStderrPipeThatNobodyReadsHoldsNothingUp) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  int writable = fcntl(ends[1], F_GETFL);
  fcntl(ends[1], F_SETFL, writable | O_NONBLOCK);
  while (write(ends[1], "x", 1) == 1) {
  }
  fcntl(ends[1], F_SETFL, writable);
  expect_service("a full pipe", ends[1]);
  EXPECT_EQ(fcntl(ends[1], F_GETFL), writable);  // other processes share it
  close(ends[0]);
  expect_service("a pipe without a reader", ends[1]);
  close(ends[1]);
}

TEST(Serve, AFullOrClosedStderrIsNotTheEnd) {
  test::OpenFile full("/dev/full", O_WRONLY);
  expect_service("a full disk", full.descriptor());
  expect_service("no stderr at all", -1);
}

TEST(Serve, ReadsAConfigurationFileThatTheCommandLineOverrules) {
  test::TemporaryFolder folder;
  std::string file =
      folder.write("serve.yaml",
                   "# a comment\nserved-model-name: [from-file, other]\napi_key: [one, two]\n"
                   "max-running-requests: 7\nlog-requests: true\nhost:\n");
  Serving server({"--config", file, "--max-running-requests", "9"});
  ASSERT_NE(server.port(), 0) << server.log();
  EXPECT_EQ(server.client().get("/v1/models").status, 401);
  const char* key = "Authorization: Bearer two\r\n";
  Response models = server.client().get("/v1/models", key);
  EXPECT_NE(models.body.find("\"from-file\""), models.body.npos) << models.body;
  EXPECT_EQ(models.body.find("\"other\""), models.body.npos) << models.body;
  EXPECT_EQ(server.client().get("/v1/models/other", key).status, 200);
  EXPECT_EQ(server.client().get("/v1/models/third", key).status, 404);
  Response info = server.client().get("/server_info", key);
  EXPECT_NE(info.body.find("\"max_running_requests\":9"), info.body.npos) << info.body;
}

TEST(Serve, SeveralNamesMayStandBeforeTheModel) {
  for (std::vector<std::string> words :
       {std::vector<std::string>{"a", "/no/model"}, {"a", "b", "/no/model"}}) {
    words.insert(words.begin(), {"serve", "--served-model-name"});
    std::string error = run_program(words).err;
    EXPECT_NE(error.find("/no/model: no such folder"), std::string::npos) << error;
  }
}

TEST(Serve, RefusesConfigurationFilesByNameOfWhatIsWrong) {
  test::TemporaryFolder folder;
  auto error = [&](const std::string& yaml) {
    std::string file = folder.write("serve.yaml", yaml);
    auto result = run_program({"serve", "--model-path", "none", "--config", file});
    EXPECT_EQ(result.exit_code, 2) << result.err;
    return result.err;
  };
  EXPECT_NE(error("no-such-option: 1\n").find("no-such-option"), std::string::npos);
  EXPECT_NE(error("quantization: fp9\n").find("quantization"), std::string::npos);
  EXPECT_NE(error("port: many\n").find("port"), std::string::npos);
  EXPECT_NE(error("port: {a: 1}\n").find("port"), std::string::npos);
  EXPECT_NE(error("- port\n").find("mapping"), std::string::npos);
  EXPECT_NE(error("port: [1\n").find("line"), std::string::npos);
  auto missing = run_program({"serve", "--model-path", "none", "--config", "/no/such/file"});
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_NE(missing.err.find("/no/such/file"), std::string::npos) << missing.err;
}

TEST(Serve, RefusesWhatItKnowsOfOtherEnginesByName) {
  auto error = [](std::vector<std::string> words) {
    words.insert(words.begin(), {"serve", "--model-path", "none"});
    auto result = run_program(words);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    return result.err;
  };
  EXPECT_NE(error({"--kv-cache-dtype", "nvfp4"}).find("--kv-cache-dtype"), std::string::npos);
  EXPECT_NE(error({"-ctk", "q5_1"}).find("--cache-type-k"), std::string::npos);
  EXPECT_NE(error({"--pp-size", "2"}).find("--pp-size"), std::string::npos);
  EXPECT_NE(error({"-ncmoe", "9"}).find("--n-cpu-moe"), std::string::npos);
  EXPECT_NE(error({"--enable-eplb"}).find("--enable-eplb"), std::string::npos);
  EXPECT_NE(error({"--no-such-option"}).find("--no-such-option"), std::string::npos);
}

TEST(Serve, TakesTheNamesOfOtherEngines) {
  Serving server({"-tp",
                  "1",
                  "--trust-remote-code",
                  "-np",
                  "5",
                  "--max-model-len",
                  "128",
                  "--block-size",
                  "32",
                  "--alias",
                  "tiny",
                  "--no-enable-prefix-caching",
                  "--async-scheduling",
                  "--enable-trace",
                  "--kv-cache-dtype",
                  "fp8",
                  "-ngl",
                  "99",
                  "--swap-space",
                  "4",
                  "--reasoning-format",
                  "none"});
  ASSERT_NE(server.port(), 0) << server.log();
  std::string info = server.client().get("/server_info").body;
  for (const char* part : {"\"max_running_requests\":5", "\"context_length\":128",
                           "\"page_size\":32", "\"served_model_name\":\"tiny\"",
                           "\"disable_radix_cache\":true", "\"disable_overlap_schedule\":false",
                           "\"draw_revision\":2", "\"kv_cache_dtype\":\"fp8_e4m3\""}) {
    EXPECT_NE(info.find(part), info.npos) << part << info;
  }
}

TEST(Serve, ShowsWhatDraftingHasMeasured) {
  Serving server({"--speculative-algorithm", "NGRAM"});
  ASSERT_NE(server.port(), 0) << server.log();
  Json info = Json::parse(server.client().get("/server_info").body);
  EXPECT_TRUE(info["speculation"].is_null()) << info;
  std::string body = R"({"input_ids": [5, 9, 37, 5, 9], "sampling_params": {"max_new_tokens": 24,
      "ignore_eos": true, "temperature": 0}})";
  auto client = server.client();
  client.send(
      fmt::format("POST /generate HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{}",
                  body.size(), body));
  Response answer = client.response();
  EXPECT_EQ(answer.status, 200) << answer.body;
  info = Json::parse(server.client().get("/server_info").body)["speculation"];
  EXPECT_GT(info["step_s_by_sequences"][0], 0) << info;
  EXPECT_GE(info["step_s_by_rows"][1], info["step_s_by_sequences"][0]) << info;
  EXPECT_GT(info["predicted_gain"], 0) << info;
}

TEST(Serve, ShowsTheStateDigestThatInspectShows) {
  auto inspected = [](const std::string& model, const std::string& page_size) {
    auto result = run_program({"inspect", "--model", model, "--load-format", "dummy", "--digest",
                               "--json", "--page-size", page_size});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return Json::parse(result.out)["state_digest"].get<std::string>();
  };
  Serving without;
  Json info = Json::parse(without.client().get("/server_info").body);
  EXPECT_TRUE(info["state_digest"].is_null()) << info;
  Serving server({"--state-digest", "--page-size", "8"});
  ASSERT_NE(server.port(), 0) << server.log();
  info = Json::parse(server.client().get("/server_info").body);
  EXPECT_EQ(info["state_digest"], inspected(server.model(), "8"));
  EXPECT_NE(info["state_digest"], inspected(server.model(), "16"));
}

TEST(Serve, KeysMayBeGivenWithCommas) {
  Serving server({"--api-key", "one,two", "--api-key", "three"});
  ASSERT_NE(server.port(), 0) << server.log();
  auto status = [&](const std::string& key) {
    return server.client().get("/v1/models", "Authorization: Bearer " + key + "\r\n").status;
  };
  for (const char* key : {"one", "two", "three"}) EXPECT_EQ(status(key), 200) << key;
  EXPECT_EQ(status("one,two"), 401);
}

TEST(Serve, TellsWhyItCannotStart) {
  Serving server;
  auto result = run_program({"serve", "--model-path", server.model(), "--load-format", "dummy",
                             "--port", std::to_string(server.port())});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.err.find("Address already in use"), std::string::npos) << result.err;
  auto model = run_program({"serve", "--model-path", "none", "--port", "0"});
  EXPECT_EQ(model.exit_code, 1);
  EXPECT_NE(model.err.find("none: no such folder"), std::string::npos) << model.err;
  auto host = run_program({"serve", "--model-path", "none", "--host", "no such host"});
  EXPECT_EQ(host.exit_code, 2);
  EXPECT_NE(host.err.find("no such host"), std::string::npos) << host.err;
}

}  // namespace
}  // namespace banyan::serve_test
