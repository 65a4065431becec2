// What a worker keeps for a router that takes over.
#include "server/worker/run_logs.h"

#include <gtest/gtest.h>

#include <string>

namespace banyan::run_logs_test {
namespace {

using std::chrono::seconds;

const RunLogs::SteadyTime kStart{seconds(1000)};

Digest digest_of(uint8_t first) {
  Digest digest;
  digest.bytes[0] = first;
  return digest;
}

RunLogs::LogPtr open(RunLogs& logs, const std::string& name, RunLogs::SteadyTime now = kStart) {
  return logs.open({.name = name, .request = digest_of(1)}, now);
}

void write(RunLogs& logs, RunLog& log, TokenId token, RunLogs::SteadyTime now = kStart) {
  logs.append(log, "line\n", now);
  log.tokens.push_back(token);
}

TEST(RunLogs, ARunIsFoundByItsNameAndItsRequest) {
  RunLogs logs;
  RunLogs::LogPtr log = open(logs, "a/0");
  EXPECT_EQ(logs.find("a/0", digest_of(1)), nullptr) << "there is no output yet";
  write(logs, *log, 7);
  EXPECT_EQ(logs.find("a/0", digest_of(1)), log);
  EXPECT_EQ(logs.find("a/0", digest_of(2)), nullptr) << "another request of the same name";
  EXPECT_EQ(logs.find("a/1", digest_of(1)), nullptr);
  EXPECT_EQ(log->lines, "line\n");
}

TEST(RunLogs, ANewRunReplacesAnOlderOneOfItsName) {
  RunLogs logs;
  RunLogs::LogPtr older = open(logs, "a/0");
  write(logs, *older, 7);
  int64_t bytes = logs.bytes();
  RunLogs::LogPtr newer = logs.open(*older, kStart);
  EXPECT_EQ(logs.find("a/0", digest_of(1)), newer);
  EXPECT_EQ(logs.bytes(), bytes);
  write(logs, *older, 8);
  EXPECT_EQ(older->lines, "") << "nobody can find it";
  EXPECT_EQ(newer->tokens, std::vector<TokenId>{7});
  logs.drop(*older);
  EXPECT_EQ(logs.find("a/0", digest_of(1)), newer);
  logs.drop(*newer);
  EXPECT_EQ(logs.find("a/0", digest_of(1)), nullptr);
  EXPECT_EQ(logs.bytes(), 0);
}

TEST(RunLogs, ARunThatGoesOnIsKept) {
  RunLogs logs;
  RunLogs::LogPtr runs = open(logs, "runs"), silent = open(logs, "silent");
  write(logs, *runs, 7);
  write(logs, *silent, 7);
  for (int s = 0; s <= 120; s += 10) write(logs, *runs, 8, kStart + seconds(s));
  EXPECT_EQ(logs.find("runs", digest_of(1)), runs);
  EXPECT_EQ(logs.find("silent", digest_of(1)), nullptr);
}

TEST(RunLogs, TheOldestMakeRoom) {
  RunLogs logs(100'000);
  for (int i = 0; i < 1000; ++i) {
    RunLogs::LogPtr log = open(logs, std::to_string(i), kStart + seconds(i) / 1000);
    logs.append(*log, std::string(500, 'x'), kStart);
    log->tokens.push_back(1);
    EXPECT_LE(logs.bytes(), 100'000 + 1100);
  }
  EXPECT_EQ(logs.find("0", digest_of(1)), nullptr);
  EXPECT_NE(logs.find("999", digest_of(1)), nullptr);
  EXPECT_NE(logs.find("950", digest_of(1)), nullptr);
}

}  // namespace
}  // namespace banyan::run_logs_test
