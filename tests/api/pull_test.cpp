// POST /api/pull, with a hub that the test provides.
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "api/server_fixture.h"
#include "base/error.h"
#include "base/json.h"

namespace banyan::pull_test {
namespace {

using test::Client;
using test::Response;
using test::ServerTest;

class Pull : public ServerTest {
 public:
  Pull() {
    config.served_model_names = {"tiny"};
    puller = [](const std::string& name, const auto& progress) -> Status {
      if (name != "acme/nano") return not_found("no model {}", name);
      progress({"sha256:aa", 0, 10});
      progress({"sha256:aa", 10, 10});
      progress({"sha256:bb", 5, 5});
      return {};
    };
  }

  Client ask(const std::string& fields) const {
    Client asking = client();
    asking.send(fmt::format(
        "POST /api/pull HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{{{}}}",
        fields.size() + 2, fields));
    return asking;
  }
  Response pull(const std::string& fields) const { return ask(fields).response(); }
  static std::vector<Json> lines(const std::string& body) {
    std::vector<Json> all;
    for (size_t begin = 0; begin < body.size();) {
      size_t end = body.find('\n', begin);
      all.push_back(parse_json(body.substr(begin, end - begin), "line").value());
      begin = end + 1;
    }
    return all;
  }
};

TEST_F(Pull, TellsOfEachFileAsItComes) {
  start();
  Response answer = pull(R"("model":"acme/nano")");
  EXPECT_EQ(answer.status, 200);
  EXPECT_TRUE(answer.has("Content-Type: application/x-ndjson"));
  std::vector<Json> all = lines(answer.body);
  ASSERT_EQ(all.size(), 7u) << answer.body;
  EXPECT_EQ(all[0], (Json{{"status", "pulling manifest"}}));
  EXPECT_EQ(all[2]["digest"], "sha256:aa");
  EXPECT_EQ(all[2]["total"], 10);
  EXPECT_EQ(all[2]["completed"], 10);
  EXPECT_EQ(all[3]["digest"], "sha256:bb");
  EXPECT_EQ(all[6], (Json{{"status", "success"}}));
}

TEST_F(Pull, IsOneObjectWhereItIsNotStreamed) {
  start();
  Response answer = pull(R"("model":"acme/nano","stream":false)");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, R"({"status":"success"})");
}

TEST_F(Pull, TakesNamesAsOllamasUsersWriteThem) {
  start();
  for (const char* name : {"hf.co/acme/nano", "acme/nano:latest", "https://hf.co/acme/nano"}) {
    EXPECT_EQ(pull(fmt::format(R"("name":"{}","stream":false)", name)).status, 200) << name;
  }
}

TEST_F(Pull, TheModelThatIsServedIsThere) {
  start();
  EXPECT_EQ(pull(R"("model":"tiny","stream":false)").body, R"({"status":"success"})");
  EXPECT_EQ(lines(pull(R"("model":"tiny:latest")").body).back()["status"], "success");
}

TEST_F(Pull, WhatGoesWrongAtOnceHasAStatus) {
  start();
  Response unknown = pull(R"("model":"acme/other")");
  EXPECT_EQ(unknown.status, 404);
  EXPECT_EQ(unknown.body, R"({"error":"no model acme/other"})");
  EXPECT_EQ(pull(R"("stream":true)").status, 400);
  EXPECT_EQ(pull(R"("model":"acme/nano","insecure":true)").status, 400);
}

TEST_F(Pull, WhatGoesWrongLaterIsALine) {
  puller = [](const std::string&, const auto& progress) -> Status {
    progress({"sha256:aa", 1, 10});
    return io_error("cut off");
  };
  start();
  Response answer = pull(R"("model":"acme/nano")");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(lines(answer.body).back(), (Json{{"error", "cut off"}}));
  EXPECT_EQ(pull(R"("model":"acme/nano","stream":false)").status, 502);
}

TEST_F(Pull, EndsWhenItsClientLeaves) {
  std::atomic<bool> ended = false;
  puller = [&](const std::string&, const auto& progress) -> Status {
    for (int64_t done = 0; progress({"sha256:aa", done, 1 << 30}); ++done) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ended = true;
    return {};
  };
  start();
  {
    Client reader = ask(R"("model":"acme/nano")");
    reader.read_until("sha256:aa");
  }
  EXPECT_TRUE(eventually([&](const auto&) { return ended.load(); }));
}

TEST_F(Pull, NeedsAKeyWhereOthersReachTheServer) {
  config.host = "0.0.0.0";
  start();
  EXPECT_EQ(pull(R"("model":"acme/nano")").status, 403);
}

TEST_F(Pull, IsRefusedWhereNoHubIsKnown) {
  puller = {};
  start();
  EXPECT_EQ(pull(R"("model":"acme/nano")").status, 400);
}

}  // namespace
}  // namespace banyan::pull_test
