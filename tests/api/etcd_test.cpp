// Workers that routers find through etcd.
#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <csignal>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "api/running_server.h"
#include "base/base64.h"
#include "base/json.h"
#include "base/log.h"
#include "client/http_client.h"
#include "support/models/tiny_model.h"
#include "support/servers/etcd_server.h"

namespace banyan::etcd_test {
namespace {

using test::EtcdServer;
using test::RunningServer;

class EtcdApi : public testing::Test {
 protected:
  void SetUp() override {
    REQUIRE_ETCD();
    spdlog::set_level(spdlog::level::off);
    etcd_ = std::make_unique<EtcdServer>();
    engine.state_digest = true;
  }
  EtcdConfig config() const {
    return {.endpoints = {"http://127.0.0.1:1", etcd_->url()},
            .cluster = "tests",
            .login = login,
            .ttl_s = 2};
  }
  std::unique_ptr<RunningServer> worker() {
    return std::make_unique<RunningServer>(engine, ServerConfig{.port = 0, .etcd = config()});
  }
  std::unique_ptr<RunningServer> router() {
    RouteConfig route{.etcd = config(), .health_interval_s = 0.02};
    return std::make_unique<RunningServer>(engine, ServerConfig{.port = 0}, route);
  }
  EtcdServer& etcd() { return *etcd_; }

  test::TemporaryFolder folder_;
  EngineConfig engine = test::tiny_model(folder_);
  EtcdLogin login;

 private:
  std::unique_ptr<EtcdServer> etcd_;
};

TEST_F(EtcdApi, WorkersComeAndGo) {
  auto first = worker();
  auto routes = router();
  ASSERT_TRUE(routes->reaches("banyan:router_announcing_workers", 1));
  EXPECT_EQ(routes->get("/count?tokens=2").status, 200);
  auto second = worker();
  ASSERT_TRUE(routes->reaches("banyan:router_announcing_workers", 2));
  first.reset();  // it drains, and says so
  ASSERT_TRUE(routes->reaches("banyan:router_announcing_workers", 1, true));
  EXPECT_EQ(routes->get("/count?tokens=2").status, 200);

  // While etcd hangs, the last set of workers holds. A worker that is still there stays after its
  // lease has expired.
  etcd().signal(SIGSTOP);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_EQ(routes->get("/count?tokens=2").status, 200);
  etcd().signal(SIGCONT);
  auto third = worker();
  ASSERT_TRUE(routes->reaches("banyan:router_announcing_workers", 2));
  EXPECT_EQ(routes->get("/count?tokens=2").status, 200);
}

// An etcd that gets users, who get another password one day.
TEST_F(EtcdApi, LogsIn) {
  HttpClient::Headers root;  // with root's token
  auto ask = [&](const std::string& path, const Json& body) {
    boost::asio::io_context io(1);
    HttpClient client(io, parse_server_url(etcd().url()).value(), root);
    return client.fetch({.path = "/v3/auth/" + path, .body = body.dump()}).value().body;
  };
  for (const char* name : {"root", "fleet"}) {
    ask("user/add", {{"name", name}, {"password", "old"}});
    ask("role/add", {{"name", name}});
    ask("user/grant", {{"user", name}, {"role", name}});
  }
  ask("role/grant", {{"name", "fleet"},
                     {"perm",
                      {{"permType", "READWRITE"},
                       {"key", to_base64("/banyan/")},
                       {"range_end", to_base64("/banyan0")}}}});
  login = {.user = "fleet", .password_file = folder_.path() + "/password"};
  std::ofstream(login.password_file) << "old\n";
  auto one = worker();
  auto first = router();
  ASSERT_TRUE(first->reaches("banyan:router_announcing_workers", 1)) << "nobody need log in yet";
  ask("enable", Json::object());
  std::string known = ask("authenticate", {{"name", "root"}, {"password", "old"}});
  root = {{"Authorization", parse_json(known, "root")->value("token", "")}};
  auto second = router();
  ASSERT_TRUE(second->reaches("banyan:router_announcing_workers", 1));
  std::ofstream(login.password_file) << "new\n";
  ask("user/changepw", {{"name", "fleet"}, {"password", "new"}});
  auto two = worker();
  ASSERT_TRUE(second->reaches("banyan:router_announcing_workers", 2));
  EtcdLogin fleet = std::exchange(login, {});
  auto stranger = router();
  std::this_thread::sleep_for(std::chrono::milliseconds(2500));  // longer than a lease
  EXPECT_EQ(stranger->figure("banyan:router_announcing_workers"), 0);
  login = fleet;
  ASSERT_TRUE(router()->reaches("banyan:router_announcing_workers", 2));
}

TEST(EtcdLogin, NeedsAUserAndAPassword) {
  EtcdConfig config{.endpoints = {"http://localhost:2379"}, .login = {.user = "fleet"}};
  EXPECT_FALSE(config.validate());
  config.login.password_file = "password";
  EXPECT_TRUE(config.validate());
}

TEST_F(EtcdApi, StreamsOutliveEtcd) {
  auto one = worker();
  auto routes = router();
  ASSERT_TRUE(routes->reaches("banyan:router_announcing_workers", 1));
  test::Client client(routes->port());
  client.send("GET /stream?tokens=3000 HTTP/1.1\r\nHost: localhost\r\n\r\n");
  client.read_until("data: ");
  etcd().signal(SIGKILL);
  EXPECT_NE(client.read_until("data: length").find("data: length"), std::string::npos);
  EXPECT_EQ(routes->get("/count?tokens=2").status, 200);
}

TEST(EtcdConfig, SaysWhatIsWrong) {
  EXPECT_TRUE(EtcdConfig().validate());
  EXPECT_TRUE((EtcdConfig{.endpoints = {"http://127.0.0.1:2379"}}).validate());
  EXPECT_FALSE((EtcdConfig{.endpoints = {"ftp://x"}}).validate());
  EXPECT_FALSE((EtcdConfig{.endpoints = {"http://x"}, .cluster = "a/b"}).validate());
  EXPECT_FALSE((EtcdConfig{.endpoints = {"http://x"}, .cluster = ""}).validate());
  ServerConfig server{.host = "0.0.0.0", .etcd = {.endpoints = {"http://127.0.0.1:2379"}}};
  EXPECT_FALSE(server.validate()) << "where do routers reach it?";
  server.etcd.advertise_url = "http://10.0.0.7:30001";
  EXPECT_TRUE(server.validate());
}

}  // namespace
}  // namespace banyan::etcd_test
