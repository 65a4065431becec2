// banyan serve as people start and end it.
#include <fmt/format.h>

#include <thread>

#include "api/client.h"
#include "cli/program.h"
#include "support/tiny_model.h"

namespace banyan {
namespace {

using test::Client;
using test::Response;
using test::run_program;

// A server in a process of its own.
class Serving {
 public:
  explicit Serving(std::vector<std::string> arguments = {}) {
    test::tiny_model(model_);
    std::vector<std::string> words = {"serve", "--model-path", model_.path(), "--load-format",
                                      "dummy", "--threads",    "1",           "--port",
                                      "0"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    log_ = model_.write("log", "");
    child_ = fork();
    if (child_ == 0) {
      dup2(open(log_.c_str(), O_WRONLY), STDERR_FILENO);
      alarm(60);
      test::become_program(words);
    }
    port_ = std::atoi(after("banyan: ready on http://127.0.0.1:").c_str());
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

  // What stands behind `text` in the log, once it is there; empty if the server has ended.
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
  EXPECT_NE(server.after("a second one ends at once"), "");
  server.kill(SIGINT);
  EXPECT_EQ(server.wait(), 130);
}

TEST(Serve, ReadsAConfigurationFileThatTheCommandLineOverrules) {
  test::TemporaryFolder folder;
  std::string file = folder.write("serve.yaml",
                                  "# a comment\nserved-model-name: from-file\napi_key: [one, two]\n"
                                  "max-running-requests: 7\nlog-requests: true\nhost:\n");
  Serving server({"--config", file, "--max-running-requests", "9"});
  ASSERT_NE(server.port(), 0) << server.log();
  EXPECT_EQ(server.client().get("/v1/models").status, 401);
  const char* key = "Authorization: Bearer two\r\n";
  Response models = server.client().get("/v1/models", key);
  EXPECT_NE(models.body.find("\"from-file\""), models.body.npos) << models.body;
  Response info = server.client().get("/server_info", key);
  EXPECT_NE(info.body.find("\"max_running_requests\":9"), info.body.npos) << info.body;
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
  EXPECT_NE(error({"--kv-cache-dtype", "fp8"}).find("--kv-cache-dtype"), std::string::npos);
  EXPECT_NE(error({"--tp-size", "2"}).find("--tp-size"), std::string::npos);
  EXPECT_NE(error({"-ngl", "99"}).find("--n-gpu-layers"), std::string::npos);
  EXPECT_NE(error({"--enable-lora"}).find("--enable-lora"), std::string::npos);
  EXPECT_NE(error({"--no-such-option"}).find("--no-such-option"), std::string::npos);
}

TEST(Serve, TakesTheNamesOfOtherEngines) {
  Serving server({"-tp", "1", "--trust-remote-code", "-np", "5", "--max-model-len", "128",
                  "--block-size", "32", "--alias", "tiny", "--no-enable-prefix-caching"});
  ASSERT_NE(server.port(), 0) << server.log();
  std::string info = server.client().get("/server_info").body;
  for (const char* part :
       {"\"max_running_requests\":5", "\"context_length\":128", "\"page_size\":32",
        "\"served_model_name\":\"tiny\"", "\"disable_radix_cache\":true"}) {
    EXPECT_NE(info.find(part), info.npos) << part << info;
  }
}

TEST(Serve, TellsWhyItCannotStart) {
  Serving server;
  auto result = run_program({"serve", "--model-path", server.model(), "--load-format", "dummy",
                             "--port", std::to_string(server.port())});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.err.find("Address already in use"), std::string::npos) << result.err;
  auto model = run_program({"serve", "--model-path", "none", "--port", "0"});
  EXPECT_EQ(model.exit_code, 1);
  EXPECT_NE(model.err.find("none/config.json"), std::string::npos) << model.err;
  auto host = run_program({"serve", "--model-path", "none", "--host", "no such host"});
  EXPECT_EQ(host.exit_code, 2);
  EXPECT_NE(host.err.find("no such host"), std::string::npos) << host.err;
}

}  // namespace
}  // namespace banyan
