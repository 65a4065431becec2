// The Redis store against a real server, and against sockets that misbehave.
#include "tier/redis/redis_store.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <functional>
#include <thread>

#include "support/few_threads.h"
#include "support/servers/certificate.h"
#include "support/servers/redis_server.h"
#include "support/tier/tier_rig.h"
#include "tier/redis/redis_connection.h"

namespace banyan::redis_store_test {
namespace {

using test::RedisServer;
using test::TierRig;

// Slots of several parts.
TierStates wide_states(const std::string& model = "model") {
  TierStates states = test::tier_states(model);
  states.unit_bytes[1] = (5 << 19) + 8;
  return states;
}

TierConfig redis_config(const std::string& url, int timeout_ms = 2000) {
  return {.backend = "redis", .url = url, .timeout = std::chrono::milliseconds(timeout_ms)};
}

TEST(RedisUrl, IsReadInFull) {
  auto address = parse_redis_url("redis://me:p%40ss@cache.example:7000/3");
  ASSERT_TRUE(address);
  EXPECT_EQ(address->host, "cache.example");
  EXPECT_EQ(address->port, 7000);
  EXPECT_EQ(address->user, "me");
  EXPECT_EQ(address->password, "p@ss");
  EXPECT_EQ(address->database, 3);
  EXPECT_EQ(address->text().find("p@ss"), std::string::npos);
  address = parse_redis_url("redis://[::1]");
  ASSERT_TRUE(address);
  EXPECT_EQ(address->host, "::1");
  EXPECT_EQ(address->port, 6379);
  address = parse_redis_url("unix://:secret@/run/redis.sock?db=2");
  ASSERT_TRUE(address);
  EXPECT_EQ(address->path, "/run/redis.sock");
  EXPECT_EQ(address->password, "secret");
  EXPECT_EQ(address->database, 2);
  for (const char* url :
       {"", "localhost", "http://localhost", "redis://", "redis://h:0", "redis://h:70000",
        "redis://h:x", "redis://h/x", "redis://h/-1", "redis://[::1", "redis://[::1]x",
        "unix://run", "unix:///run/s?db=", "rediss://", "rediss://h?x=1",
        "rediss://h?ssl_certfile=a", "rediss://h?ssl_cert_reqs=none"}) {
    EXPECT_FALSE(parse_redis_url(url)) << url;
  }
  address = parse_redis_url(
      "rediss://:secret@cache.example:6380/3?ssl_ca_certs=/a%20b.pem&ssl_certfile=c&ssl_keyfile=k");
  ASSERT_TRUE(address);
  EXPECT_EQ(address->text(), "rediss://cache.example:6380/3");
  EXPECT_EQ(address->files.authorities, std::vector<std::string>{"/a b.pem"});
  EXPECT_EQ(address->files.certificate + address->files.key, "ck");
  EXPECT_FALSE(
      make_store({.backend = "redis", .url = "redis://h", .connections = 9}, wide_states()));
}

// It waited forever for the threads that had begun.
TEST(RedisStore, AThreadThatCannotStartIsAnError) {
  TierStates states = wide_states();
  auto start = [&] {
    (void)make_store({.backend = "redis", .url = "unix:///none", .connections = 4}, states);
  };
  EXPECT_EQ(test::with_few_threads(2, start), test::FewThreads::kThrew);
}

// The server asks for a certificate, and has one of an authority that must be known.
TEST(RedisStore, SpeaksTls) {
  REQUIRE_REDIS();
  test::TemporaryFolder folder;
  test::Certificate servers(folder, "localhost"), own(folder, "engine"), other(folder, "other");
  RedisServer server(
      fmt::format("--tls-cert-file {} --tls-key-file {} --tls-ca-cert-file {} --requirepass secret",
                  servers.certificate_file, servers.key_file, own.certificate_file),
      true);
  auto url = [&](const test::Certificate& authority, const test::Certificate& client) {
    return fmt::format(
        "rediss://:secret@localhost:{}/1?ssl_ca_certs={}&ssl_certfile={}&ssl_keyfile={}",
        server.port(), authority.certificate_file, client.certificate_file, client.key_file);
  };
  TierRig first(redis_config(url(servers, own)), wide_states());
  TierRig second(redis_config(url(servers, own)), wide_states());
  for (int64_t n = 0; n < 6; ++n) {
    for (int c : {0, 1}) {
      EXPECT_EQ(second.read(n, c), TierOutcome::kAbsent);
      EXPECT_EQ(first.write(n, c, n % 2 == 0), TierOutcome::kDone);
      EXPECT_EQ(second.read(n, c, n % 3 == 0), TierOutcome::kDone);
    }
  }
  EXPECT_EQ(second.wrong(), 0);
  for (const std::string& bad : {url(other, own), url(servers, other)}) {
    EXPECT_FALSE(TierRig(redis_config(bad), wide_states()).find(1));
  }
  TierRig plain(redis_config(fmt::format("redis://localhost:{}", server.port())), wide_states());
  EXPECT_FALSE(plain.find(1));
  EXPECT_FALSE(make_store(redis_config("rediss://h?ssl_ca_certs=/none"), wide_states()));
}

TEST(RedisStore, EnginesShareWhatTheyWrite) {
  REQUIRE_REDIS();
  RedisServer server;
  TierRig first(redis_config(server.url() + "/2"), wide_states());
  TierRig second(redis_config("unix://" + server.socket() + "?db=2"), wide_states());
  for (int64_t n = 0; n < 6; ++n) {
    for (int c : {0, 1}) {
      EXPECT_EQ(second.read(n, c), TierOutcome::kAbsent);
      EXPECT_FALSE(second.find(n, c));
      EXPECT_EQ(first.write(n, c, n % 2 == 0), TierOutcome::kDone);
      EXPECT_TRUE(second.find(n, c));
      EXPECT_EQ(second.read(n, c, n % 3 == 0), TierOutcome::kDone);
    }
  }
  EXPECT_EQ(second.wrong(), 0);
  EXPECT_FALSE(TierRig(redis_config(server.url() + "/2"), wide_states("other")).find(1));
  EXPECT_FALSE(TierRig(redis_config(server.url()), wide_states()).find(1));
  TierConfig config = redis_config(server.url() + "/2");
  config.ranks = 2;
  EXPECT_FALSE(TierRig(config, wide_states()).find(1));
}

TEST(RedisStore, FindsManyAtOnce) {
  REQUIRE_REDIS();
  RedisServer server;
  TierRig rig(redis_config(server.url()), wide_states());
  std::vector<TierKey> keys;
  for (int64_t n = 0; n < 700; ++n) {
    keys.push_back(test::TierUnit(wide_states(), n, 0).key());
    if (n % 100 != 0) continue;
    ASSERT_EQ(rig.write(n), TierOutcome::kDone);
  }
  rig.store().find({.id = 5000, .keys = keys});
  TierDone done = rig.wait_for(5000);
  EXPECT_EQ(done.outcome, TierOutcome::kDone);
  for (size_t n = 0; n < keys.size(); ++n) EXPECT_EQ(done.found[n], n % 100 == 0) << n;
}

TEST(RedisStore, WritesWhatIsThereOnce) {
  REQUIRE_REDIS();
  RedisServer server;
  TierRig rig(redis_config(server.url()), wide_states());
  test::TierUnit unit(wide_states(), 1, 1);
  unit.fill();
  rig.store().write(unit.job(100));
  EXPECT_EQ(rig.wait_for(100).work[0].bytes, 4096 + (5 << 19) + 8);
  rig.store().write(unit.job(101));
  TierDone again = rig.wait_for(101);
  EXPECT_EQ(again.outcome, TierOutcome::kDone);
  EXPECT_EQ(again.work[0].bytes, 0);
}

TEST(RedisStore, AServerThatLiesIsFoundOut) {
  REQUIRE_REDIS();
  RedisServer server;
  TierRig rig(redis_config(server.url()), wide_states());
  const char* lies[] = {"SETRANGE {} 40 xyzw", "SETRANGE {} 5000 xyzw", "APPEND {} x", "SET {} x",
                        "SET {} "};
  for (const char* lie : lies) {
    ASSERT_EQ(rig.write(1), TierOutcome::kDone);
    std::string key = server.command("KEYS *");
    key.pop_back();
    std::string command = lie;
    command.replace(command.find("{}"), 2, key);
    (void)server.command(command);
    TierOutcome outcome = rig.read(1);
    EXPECT_TRUE(lie == std::string("SET {} ") || outcome == TierOutcome::kChecksum) << lie;
    if (outcome == TierOutcome::kDone) continue;  // the last is no command
    EXPECT_EQ(rig.read(1), TierOutcome::kAbsent);
  }
  // Another record in its place.
  ASSERT_EQ(rig.write(2), TierOutcome::kDone);
  std::string other = server.command("KEYS *");
  (void)server.command("FLUSHDB");
  ASSERT_EQ(rig.write(3), TierOutcome::kDone);
  std::string key = server.command("KEYS *");
  key.pop_back();
  other.pop_back();
  (void)server.command("RENAME " + key + " " + other.substr(0, other.find('\n')));
  EXPECT_NE(rig.read(2), TierOutcome::kDone);
  EXPECT_EQ(rig.wrong(), 0);
  EXPECT_EQ(rig.store().stats().health, TierHealth::kOn);
}

TEST(RedisStore, AMissingPartIsAMiss) {
  REQUIRE_REDIS();
  RedisServer server;
  TierRig rig(redis_config(server.url()), wide_states());
  ASSERT_EQ(rig.write(1, 1), TierOutcome::kDone);
  std::string keys = server.command("KEYS *#1");
  keys.pop_back();
  ASSERT_EQ(server.command("DEL " + keys), "1");
  EXPECT_FALSE(rig.find(1, 1));
  EXPECT_EQ(rig.read(1, 1), TierOutcome::kAbsent);
  EXPECT_EQ(rig.write(1, 1), TierOutcome::kDone);
  EXPECT_EQ(rig.read(1, 1), TierOutcome::kDone);
  EXPECT_EQ(rig.wrong(), 0);
}

TEST(RedisStore, RecordsHaveATimeToLive) {
  REQUIRE_REDIS();
  RedisServer server;
  TierConfig config = redis_config(server.url());
  config.time_to_live = std::chrono::seconds(1000);
  TierRig rig(config, wide_states());
  ASSERT_EQ(rig.write(1), TierOutcome::kDone);
  std::string key = server.command("KEYS *");
  key.pop_back();
  EXPECT_GT(std::stoi(server.command("TTL " + key)), 990);
  ASSERT_EQ(server.command("EXPIRE " + key + " 50"), "1");
  rig.touch(1);
  for (int i = 0; i < 500 && std::stoi(server.command("TTL " + key)) <= 50; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_GT(std::stoi(server.command("TTL " + key)), 990);
}

TEST(RedisStore, ForgetsItsDigestWhenTold) {
  REQUIRE_REDIS();
  RedisServer server;
  TierRig rig(redis_config(server.url()), wide_states());
  TierRig other(redis_config(server.url()), wide_states("other"));
  for (int64_t n = 0; n < 50; ++n) ASSERT_EQ(rig.write(n), TierOutcome::kDone);
  ASSERT_EQ(other.write(1), TierOutcome::kDone);
  rig.store().clear();
  EXPECT_FALSE(rig.find(1));
  EXPECT_TRUE(other.find(1));
  EXPECT_EQ(server.command("DBSIZE"), "1");
}

TEST(RedisStore, SignsIn) {
  REQUIRE_REDIS();
  RedisServer server("--requirepass secret");
  std::string at = "127.0.0.1:" + std::to_string(server.port());
  TierRig good(redis_config("redis://:secret@" + at + "/1"), wide_states());
  EXPECT_EQ(good.write(1), TierOutcome::kDone);
  EXPECT_EQ(good.read(1), TierOutcome::kDone);
  TierRig bad(redis_config("redis://:wrong@" + at), wide_states());
  TierRig none(redis_config("redis://" + at), wide_states());
  for (TierRig* rig : {&bad, &none}) {
    for (int i = 0; i < 5; ++i) EXPECT_EQ(rig->read(1), TierOutcome::kFailed);
    EXPECT_EQ(rig->store().stats().health, TierHealth::kOff);
    EXPECT_NE(rig->store().stats().trouble, "");
  }
}

TEST(RedisStore, AFullServerRefusesOrForgets) {
  REQUIRE_REDIS();
  RedisServer server;
  ASSERT_EQ(server.command("CONFIG SET maxmemory 8mb"), "OK");
  TierRig rig(redis_config(server.url()), wide_states());
  int refused = 0;
  for (int64_t n = 0; n < 8; ++n) refused += rig.write(n, 1) == TierOutcome::kRefused;
  EXPECT_GT(refused, 2);
  EXPECT_EQ(rig.store().stats().health, TierHealth::kOn);
  ASSERT_EQ(server.command("CONFIG SET maxmemory-policy allkeys-lru"), "OK");
  for (int64_t n = 10; n < 20; ++n) EXPECT_EQ(rig.write(n, 1), TierOutcome::kDone);
  int there = 0;
  for (int64_t n = 0; n < 20; ++n) there += rig.read(n, 1) == TierOutcome::kDone;
  EXPECT_LT(there, 10);
  EXPECT_EQ(rig.wrong(), 0);
}

TEST(RedisStore, AServerThatIsKilledIsAMiss) {
  REQUIRE_REDIS();
  RedisServer server;
  TierRig rig(redis_config(server.url()), wide_states());
  ASSERT_EQ(rig.write(1), TierOutcome::kDone);
  server.signal(SIGKILL);
  for (int i = 0; i < 6; ++i) {
    EXPECT_FALSE(rig.find(1));
    EXPECT_EQ(rig.read(1), TierOutcome::kFailed);
    EXPECT_NE(rig.write(2), TierOutcome::kDone);
  }
  EXPECT_EQ(rig.store().stats().health, TierHealth::kOff);
  EXPECT_EQ(rig.write(2), TierOutcome::kRefused);
}

TEST(RedisStore, AServerThatIsStoppedIsAMiss) {
  REQUIRE_REDIS();
  RedisServer server;
  ASSERT_EQ(TierRig(redis_config(server.url()), wide_states()).write(1), TierOutcome::kDone);
  TierRig rig(redis_config(server.url(), 150), wide_states());
  server.signal(SIGSTOP);
  EXPECT_EQ(rig.read(1), TierOutcome::kTimeout);
  for (int i = 0; i < 6; ++i) EXPECT_NE(rig.read(1), TierOutcome::kDone);
  EXPECT_EQ(rig.store().stats().health, TierHealth::kOff);
  server.signal(SIGCONT);
  TierRig next(redis_config(server.url()), wide_states());
  EXPECT_EQ(next.read(1), TierOutcome::kDone);
  EXPECT_EQ(next.wrong(), 0);
}

TEST(RedisStore, AServerThatIsAbsentIsNoError) {
  TierRig rig(redis_config("redis://127.0.0.1:1"), wide_states());
  for (int i = 0; i < 5; ++i) EXPECT_EQ(rig.read(1), TierOutcome::kFailed);
  EXPECT_EQ(rig.store().stats().health, TierHealth::kOff);
  rig.store().clear();
}

// A server that answers everything with the same given bytes, over and over, without end.
class Babbler {
 public:
  // `pause`: between bytes.
  Babbler(std::string answer, std::chrono::milliseconds pause) : answer_(std::move(answer)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    EXPECT_EQ(::listen(listener_, 16), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::jthread([this, pause] { loop(pause); });
  }
  ~Babbler() {
    ending_ = true;
    thread_.join();
    ::close(listener_);
  }
  std::string url() const { return "redis://127.0.0.1:" + std::to_string(port_); }

 private:
  void loop(std::chrono::milliseconds pause) {
    std::vector<std::jthread> talks;
    while (!ending_) {
      pollfd on{.fd = listener_, .events = POLLIN, .revents = 0};
      if (::poll(&on, 1, 10) <= 0) continue;
      int talk = ::accept(listener_, nullptr, nullptr);
      talks.emplace_back([this, talk, pause] {
        std::array<char, 4096> asked;
        if (::recv(talk, asked.data(), asked.size(), 0) > 0) {
          for (size_t i = 0; !ending_ && !answer_.empty(); ++i) {
            if (::send(talk, &answer_[i % answer_.size()], 1, MSG_NOSIGNAL | MSG_DONTWAIT) != 1) {
              break;
            }
            if (pause.count() > 0) std::this_thread::sleep_for(pause);
          }
          while (!ending_ && pause.count() >= 0) {
            pollfd closed{.fd = talk, .events = POLLIN, .revents = 0};
            if (::poll(&closed, 1, 10) > 0 && ::recv(talk, asked.data(), asked.size(), 0) <= 0) {
              break;
            }
          }
        }
        ::close(talk);
      });
    }
  }

  std::string answer_;
  int listener_ = -1, port_ = 0;
  std::atomic<bool> ending_ = false;
  std::jthread thread_;
};

TEST(RedisStore, NonsenseAndSlownessAreMisses) {
  const std::pair<const char*, int> answers[] = {
      {"", 0},         // sends nothing
      {"", -1},        // closes the connection
      {"$-1\r\n", 0},  // nothing is there
      {"$5\r\nabcde\r\n", 0},
      {"$999999999\r\nabc", 0},
      {"*999999999\r\n", 0},
      {"*1\r\n", 0},
      {":1\r\n", 0},
      {"-ERR no\r\n", 0},
      {"+OK\r\n", 0},
      {"HTTP/1.1 400 Bad Request\r\n\r\n", 0},
      {"$16384\r\nx", 20},  // a byte now and then
  };
  for (auto [answer, pause] : answers) {
    Babbler server(answer, std::chrono::milliseconds(pause));
    TierRig rig(redis_config(server.url(), 200), wide_states());
    auto begin = std::chrono::steady_clock::now();
    for (int c : {0, 1}) {
      EXPECT_NE(rig.read(1, c), TierOutcome::kDone) << answer;
      (void)rig.find(1, c);
      (void)rig.write(1, c);
    }
    rig.store().sync();
    EXPECT_EQ(rig.wrong(), 0);
    // Not a measurement: a hang would last forever.
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(50)) << answer;
  }
}

}  // namespace
}  // namespace banyan::redis_store_test
