// POST /start_profile and /stop_profile: a Chrome trace of steps, layers and kernels.
#include <fmt/format.h>

#include <map>
#include <string>

#include "api/server_fixture.h"
#include "base/json.h"

namespace banyan::profile_test {
namespace {

using test::Response;
using test::ServerTest;

class Profile : public ServerTest {
 protected:
  Response post(const std::string& target, const std::string& body) {
    test::Client sender = client();
    sender.send(fmt::format("POST {} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{}",
                            target, body.size(), body));
    return sender.response();
  }
  Json trace() { return parse_json(post("/stop_profile", "").body, "trace").value(); }
  // Counts events by name, and checks that those of a step lie within it.
  static std::map<std::string, int> names_in(const Json& trace) {
    std::map<std::string, int> names;
    double step_end = 0;
    for (const Json& event : trace["traceEvents"]) {
      if (event["ph"] != "X") continue;
      ++names[event["name"].get<std::string>()];
      EXPECT_GE(event["dur"].get<double>(), 0);
      EXPECT_GE(event["ts"].get<double>(), 0);
      if (event["name"] == "step") {
        EXPECT_GE(event["ts"].get<double>(), step_end);
        step_end = event["ts"].get<double>() + event["dur"].get<double>();
      }
    }
    return names;
  }
};

TEST_F(Profile, ShowsStepsLayersAndKernels) {
  start();
  std::string before = get("/count?tokens=5&prompt=9").body;
  ASSERT_EQ(post("/start_profile", "").status, 200);
  EXPECT_EQ(post("/start_profile", "").status, 400);
  EXPECT_EQ(get("/count?tokens=5&prompt=9").body, before);
  Json shown = trace();
  auto names = names_in(shown);
  int64_t steps = shown["otherData"]["steps"];
  EXPECT_GE(steps, 5);
  EXPECT_EQ(names["step"], steps);
  EXPECT_EQ(names["launch"], steps);
  EXPECT_EQ(names["layer 0"], steps);
  EXPECT_EQ(names["draw"], steps);
  EXPECT_GE(names["rms_norm"], 2 * steps);
  EXPECT_GE(names["gemm f32"], 2 * steps);
  EXPECT_EQ(shown["otherData"]["complete"], true);
  EXPECT_EQ(post("/stop_profile", "").status, 400);
}

TEST_F(Profile, EndsAfterTheStepsThatWereAskedFor) {
  start();
  ASSERT_EQ(post("/start_profile", R"({"num_steps":2,"activities":["CPU","GPU"]})").status, 200);
  get("/count?tokens=9&prompt=9");
  EXPECT_EQ(names_in(trace())["step"], 2);
  EXPECT_EQ(post("/start_profile", R"({"num_steps":1})").status, 200);
  EXPECT_EQ(names_in(trace())["step"], 0);  // nothing ran
}

TEST_F(Profile, OptionsThatItLacksAreRefusedByName) {
  start();
  for (const char* body : {R"({"output_dir":"/tmp"})", R"({"num_steps":0})", R"({"start_step":3})",
                           R"({"activities":["MEM"]})", R"({"with_stack":true})"}) {
    Response refused = post("/start_profile", body);
    EXPECT_EQ(refused.status, 400) << body;
  }
  EXPECT_EQ(post("/stop_profile", "").status, 400);
}

}  // namespace
}  // namespace banyan::profile_test
