// Messages between routers and workers: round trips, and refusal of everything else.
#include "server/worker/wire.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "llm/thinking_budget.h"
#include "server/error.h"
#include "server/fields/token_filter.h"
#include "server/worker/worker_info.h"

namespace banyan::worker_wire_test {
namespace {

WireRequest full_request() {
  WireRequest wire;
  GenerateRequest& r = wire.request;
  r.prompt = {1, 2, 3};
  r.resume_tokens = {7, 8};
  r.sampling.temperature = 0.1f;
  r.sampling.seed = std::numeric_limits<uint64_t>::max();
  r.sampling.sample_index = 3;
  r.sampling.repeat_last_n = 64;
  r.sampling.logit_bias = {{5, -1.5f}, {6, 0.1f}};
  r.sampling.dry_breakers =
      std::make_shared<DryBreakers>(DryBreakers{{4, {{}, {5, 6}}}, {9, {{1}}}});
  r.options.max_new_tokens = 99;
  r.options.stop_token_ids = {2};
  r.options.prompt_logprobs_begin = 1;
  r.options.cache_salt = "sält";
  r.options.client = "a secret key";
  r.options.draft_tokens_max = 4;
  r.options.pooling = Pooling::kMean;
  wire.constraint.grammar = GrammarSource::regex("a|\"b\"");
  wire.constraint.early = {.tokens_min = std::numeric_limits<int64_t>::max(), .stops = {2, 3}};
  auto rules = std::make_shared<ThinkingRules>();
  rules->begin = "<think>";
  rules->ending = {11, 12};
  rules->tokens_max = 5;
  rules->inside = true;
  wire.constraint.thinking = rules;
  wire.name = "one/0";
  return wire;
}

Result<WireRequest> sent(const WireRequest& wire) {
  return read_request(write_request(wire));
}

TEST(WorkerWire, ARequestArrivesAsItWas) {
  WireRequest wire = full_request();
  Result<WireRequest> got = sent(wire);
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->request.prompt, wire.request.prompt);
  EXPECT_EQ(got->request.resume_tokens, wire.request.resume_tokens);
  EXPECT_EQ(got->request.sampling.temperature, 0.1f);
  EXPECT_EQ(got->request.sampling.seed, wire.request.sampling.seed);
  EXPECT_EQ(got->request.sampling.repeat_last_n, 64);
  EXPECT_EQ(got->request.sampling.logit_bias, wire.request.sampling.logit_bias);
  EXPECT_EQ(*got->request.sampling.dry_breakers, *wire.request.sampling.dry_breakers);
  EXPECT_EQ(got->request.options.prompt_logprobs_begin, 1);
  EXPECT_EQ(got->request.options.cache_salt, "sält");
  EXPECT_EQ(got->request.options.pooling, Pooling::kMean);
  EXPECT_EQ(got->request.options.client, "") << "the router is the worker's client";
  EXPECT_EQ(got->constraint.grammar, wire.constraint.grammar);
  EXPECT_EQ(got->constraint.early.tokens_min, wire.constraint.early.tokens_min);
  EXPECT_EQ(got->constraint.thinking->ending, wire.constraint.thinking->ending);
  EXPECT_EQ(got->constraint.tokens, nullptr);
  EXPECT_EQ(got->name, "one/0");
}

TEST(WorkerWire, ADigestCoversWhatTheOutputDependsOn) {
  Digest digest = request_digest(full_request());
  WireRequest later = full_request();
  later.name = "two/0";
  later.request.resume_tokens = {7, 8, 9};
  later.request.options.age_s = later.request.options.timeout_s = 3;
  EXPECT_EQ(request_digest(later), digest);
  WireRequest prompt = full_request(), seed = full_request(), salt = full_request();
  prompt.request.prompt.back() = 4;
  seed.request.sampling.seed = 1;
  salt.request.options.cache_salt = "another";
  for (const WireRequest& other : {prompt, seed, salt}) EXPECT_NE(request_digest(other), digest);
}

TEST(WorkerWire, RulesOfTokensArrive) {
  WireRequest wire{.request = {.prompt = {1}}};
  wire.constraint.tokens =
      std::make_shared<TokenRules>(TokenRules{.allowed = {1, 2}, .banned = {{3}, {4, 5}}});
  Result<WireRequest> got = sent(wire);
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->constraint.tokens->allowed, wire.constraint.tokens->allowed);
  EXPECT_EQ(got->constraint.tokens->banned, wire.constraint.tokens->banned);
}

TEST(WorkerWire, TakesNothingElse) {
  struct Case {
    const char *body, *message;
  };
  for (auto [body, message] :
       {Case{"", "not valid JSON"}, Case{"[]", "object"}, Case{"{}", "version"},
        Case{R"({"version": 1, "prompt": [1]})", "version: this worker has 5"},
        Case{R"({"version": 5, "promt": 1})", "unknown member promt"},
        Case{R"({"version": 5, "sampling": {"top_k": 1.5}})", "top_k: an integer"},
        Case{R"({"version": 5, "sampling": {"top_k": 1e300}})", "top_k: an integer"},
        Case{R"({"version": 5, "options": {"stop_token_ids": [4294967296]}})", "a smaller integer"},
        Case{R"({"version": 5, "sampling": {"top_p": 1e39}})", "top_p: a smaller number"},
        Case{R"({"version": 5, "options": {"pooling": 3}})", "pooling: a kind of pooling"},
        Case{R"({"version": 5, "sampling": {"seed": -1}})", "seed: a smaller integer"},
        Case{R"({"version": 5, "sampling": {"logit_bias": [[1]]}})", "pairs of token and bias"},
        Case{R"({"version": 5, "sampling": {"dry_breakers": [[]]}})", "dry_breakers"},
        Case{R"({"version": 5, "constraint": {"grammar": {"kind": 9}}})", "a kind of grammar"},
        Case{R"({"version": 5, "constraint": {"tokens": {"banned": [[]]}}})", "banned"},
        Case{R"({"version": 5, "constraint": {"tokens": {}, "grammar": {}}})", "not both"},
        Case{R"({"version": 5})", "prompt: a list of token ids"}}) {
    Result<WireRequest> got = read_request(body);
    ASSERT_FALSE(got) << body;
    EXPECT_NE(got.error().message.find(message), std::string::npos) << got.error().message;
  }
}

TEST(WorkerWire, APartOfARequestIsRefused) {
  std::string body = write_request(full_request());
  for (size_t size = 0; size < body.size(); ++size) {
    EXPECT_FALSE(read_request(std::string_view(body).substr(0, size))) << size;
  }
  EXPECT_TRUE(read_request(body));
  EXPECT_FALSE(read_request(body + '\0'));
}

TEST(WorkerWire, AnEventArrivesBitForBit) {
  std::vector<TokenLogprob> top = {{5, -0.1f}, {6, -INFINITY}}, chosen = {{7, 1e-40f}};
  std::vector<float> embedding = {0.1f, -1e-40f, 3};
  TokenEvent event{.position = 12,
                   .has_token = true,
                   .token = 5,
                   .logprob = -0.1f,
                   .top = top,
                   .chosen = chosen,
                   .finish = FinishReason::kError,
                   .matched_stop = -1,
                   .cached_tokens = 8,
                   .queued_s = 0.25,
                   .drafted = true,
                   .drafts = 2,
                   .draft_tokens = 9,
                   .error = {ErrorCode::kCorrupt, "a \"b\"\n"},
                   .embedding = embedding,
                   .restored_tokens = 3};
  std::string text;
  append_event(event, text);
  ASSERT_TRUE(text.ends_with("\n"));
  text.pop_back();
  WireLine line;
  Status read = read_line(text, line);
  ASSERT_TRUE(read) << text;
  EXPECT_EQ(line.kind, WireLine::Kind::kEvent);
  EXPECT_EQ(line.event.position, 12);
  EXPECT_EQ(line.event.token, 5);
  EXPECT_EQ(std::bit_cast<uint32_t>(line.event.logprob), std::bit_cast<uint32_t>(-0.1f));
  ASSERT_EQ(line.event.top.size(), 2u);
  EXPECT_EQ(line.event.top[1].logprob, -INFINITY);
  ASSERT_EQ(line.event.chosen.size(), 1u);
  EXPECT_EQ(line.event.chosen[0].logprob, 1e-40f);
  EXPECT_EQ(line.event.finish, FinishReason::kError);
  EXPECT_EQ(line.event.error.message, "a \"b\"\n");
  EXPECT_EQ(line.event.error.code, ErrorCode::kCorrupt);
  EXPECT_EQ(line.event.queued_s, 0.25);
  EXPECT_TRUE(line.event.drafted);
  EXPECT_EQ(line.event.restored_tokens, 3);
  EXPECT_TRUE(std::ranges::equal(line.event.embedding, embedding));
}

// The digest followed the order of a hash table, so that one run could have two.
TEST(WorkerWire, EqualBreakersAreWrittenAlike) {
  WireRequest one = full_request(), other = full_request();
  auto forwards = std::make_shared<DryBreakers>(), backwards = std::make_shared<DryBreakers>();
  for (TokenId id = 0; id < 100; ++id) (*forwards)[id] = {{}, {5}};
  for (TokenId id = 99; id >= 0; --id) (*backwards)[id] = {{5}, {}};
  one.request.sampling.dry_breakers = forwards;
  other.request.sampling.dry_breakers = backwards;
  EXPECT_EQ(write_request(one), write_request(other));
  EXPECT_EQ(request_digest(one), request_digest(other));
  Result<WireRequest> got = sent(one);
  ASSERT_TRUE(got);
  EXPECT_EQ(write_request(*got), write_request(one));
}

TEST(WorkerWire, NoticesAreLinesToo) {
  WireLine line;
  std::string text;
  append_rejection({ErrorCode::kExhausted, "full"}, text);
  ASSERT_TRUE(read_line(text, line));
  EXPECT_EQ(line.kind, WireLine::Kind::kRejected);
  EXPECT_EQ(line.event.error.code, ErrorCode::kExhausted);
  ASSERT_TRUE(read_line(kResumableLine, line));
  EXPECT_EQ(line.kind, WireLine::Kind::kResumable);
  for (const char* broken :
       {"", "[", "[]", "{}", "[1,2,3]", "7", R"({"rejected":[99,"x"]})", R"({"rejected":3})",
        R"([1,1,1,0,77,-1,0,0,0,0,0,[],[],0,""])", R"([1,1,1,0,0,-1,0,0,0,0,0,[1],[],0,""])"}) {
    EXPECT_FALSE(read_line(broken, line)) << broken;
  }
}

TEST(WorkerWire, AWorkerTellsWhatItIs) {
  WorkerInfo info{.state = WorkerInfo::State::kDraining,
                  .epoch = 77,
                  .model = "m",
                  .identity = "i",
                  .running_max = 8,
                  .steps = 5};
  Result<WorkerInfo> got = read_worker_info(to_json(info).dump());
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(to_json(*got), to_json(info));
  Json other = to_json(info);
  other["version"] = kWorkerProtocol - 1;
  EXPECT_EQ(read_worker_info(other.dump()).error().code, ErrorCode::kUnsupported);
  other = to_json(info);
  other.erase("steps");
  EXPECT_FALSE(read_worker_info(other.dump()));
  EXPECT_FALSE(read_worker_info("<html>"));
}

TEST(WorkerWire, AWorkerTellsThatItsEngineHangs) {
  std::string hangs = error_json(503, "no step", {}, kEngineHangsCode, "/worker/info").dump();
  EXPECT_EQ(read_engine_hangs(hangs), "no step");
  EXPECT_FALSE(read_worker_info(hangs));
  std::string busy = error_json(503, "too many connections", {}, {}, "/worker/info").dump();
  for (std::string_view other : {std::string_view(busy), std::string_view("<html>"),
                                 std::string_view(R"({"error":"engine_hangs"})"),
                                 std::string_view(R"({"error":{"code":503}})")}) {
    EXPECT_EQ(read_engine_hangs(other), std::nullopt) << other;
  }
}

}  // namespace
}  // namespace banyan::worker_wire_test
