// Spans of requests as a collector sees them, and collectors that are down, full or hang.
#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "api/server_fixture.h"
#include "api/trace_collector.h"
#include "server/tracing/span_exporter.h"
#include "support/api.h"

namespace banyan::tracing_test {
namespace {

using test::attribute;
using test::Client;
using test::Response;
using test::TraceCollector;

constexpr const char* kTraceId = "0af7651916cd43dd8448eb211c80319c";
constexpr const char* kParentId = "b7ad6b7169203331";

// Destroyed after the server that sends to it.
struct WithCollector {
  TraceCollector collector;
};

class Tracing : public WithCollector, public test::ServerTest {
  test::TemporaryFolder model_;

 protected:
  Tracing() {
    engine = test::tiny_text_model(model_, "{{ messages[0].content }}");
    config.traces_endpoint = collector.url();
    config.served_model_names = {"tiny"};
  }

  static std::string headers(const char* flags) {
    return fmt::format("traceparent: 00-{}-{}-{}\r\ntracestate: vendor=1\r\n", kTraceId, kParentId,
                       flags);
  }
  Response post(const std::string& path, const std::string& body, const std::string& more = "") {
    Client client = this->client();
    client.send(fmt::format("POST {} HTTP/1.1\r\nHost: localhost\r\n{}Content-Length: {}\r\n\r\n{}",
                            path, more, body.size(), body));
    return client.response();
  }
  Response chat(const std::string& fields, const std::string& more = "") {
    return post("/v1/chat/completions",
                R"({"model":"tiny","messages":[{"role":"user","content":"Hi"}],"max_tokens":5,)"
                R"("ignore_eos":true,"temperature":0.5)" +
                    fields + "}",
                more);
  }
};

void expect_request_of_caller(const Json& span) {
  EXPECT_EQ(span["traceId"], kTraceId);
  EXPECT_EQ(span["parentSpanId"], kParentId);
  EXPECT_EQ(span["traceState"], "vendor=1");
  EXPECT_EQ(span["kind"], 2);
  EXPECT_FALSE(span.contains("status")) << span;
  EXPECT_EQ(attribute(span, "gen_ai.response.model"), "tiny");
  EXPECT_EQ(attribute(span, "gen_ai.request.max_tokens"), "5");
  EXPECT_EQ(attribute(span, "gen_ai.request.temperature"), "0.5");
  EXPECT_EQ(attribute(span, "gen_ai.request.n"), "1");
  EXPECT_EQ(attribute(span, "gen_ai.usage.completion_tokens"), "5");
  EXPECT_NE(attribute(span, "gen_ai.usage.prompt_tokens"), "0");
  EXPECT_EQ(attribute(span, "gen_ai.response.finish_reasons"),
            R"({"values":[{"stringValue":"length"}]})");
  for (const char* name : {"gen_ai.latency.time_in_queue", "gen_ai.latency.time_to_first_token",
                           "gen_ai.latency.e2e", "gen_ai.usage.cached_tokens"}) {
    EXPECT_NE(attribute(span, name), "none") << name;
  }
  int64_t start = std::stoll(span["startTimeUnixNano"].get<std::string>());
  EXPECT_LT(start, std::stoll(span["endTimeUnixNano"].get<std::string>()));
}

TEST_F(Tracing, AChatIsASpanOfItsCallersTrace) {
  start();
  Response whole = chat("", headers("01"));
  ASSERT_EQ(whole.status, 200) << whole.body;
  Response streamed = chat(R"(,"stream":true)", headers("01"));
  ASSERT_EQ(streamed.status, 200) << streamed.body;
  std::vector<Json> requests = collector.spans("llm_request", 2);
  ASSERT_EQ(requests.size(), 2u);
  for (const Json& request : requests) expect_request_of_caller(request);
  EXPECT_NE(requests[0]["spanId"], requests[1]["spanId"]);
  EXPECT_EQ(attribute(requests[0], "gen_ai.request.id"),
            parse_json(whole.body, "body").value()["id"].get<std::string>());
  for (const char* part : {"queue", "prefill", "decode"}) {
    std::vector<Json> parts = collector.spans(part, 2);
    ASSERT_EQ(parts.size(), 2u);
    EXPECT_EQ(parts[0]["parentSpanId"], requests[0]["spanId"]);
    EXPECT_EQ(parts[0]["traceId"], kTraceId);
  }
  EXPECT_TRUE(collector.heads()[0].starts_with("POST /v1/traces HTTP/1.1\r\n"));
  EXPECT_NE(collector.heads()[0].find("Content-Type: application/json\r\n"), std::string::npos);
}

TEST_F(Tracing, ChoicesOfARequestShareATraceOfTheirOwn) {
  start();
  ASSERT_EQ(chat(R"(,"n":2)").status, 200);
  std::vector<Json> requests = collector.spans("llm_request", 2);
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_EQ(requests[0]["traceId"], requests[1]["traceId"]);
  EXPECT_FALSE(requests[0].contains("parentSpanId"));
  EXPECT_EQ(attribute(requests[0], "gen_ai.request.n"), "2");
}

TEST_F(Tracing, WhatTheCallerDoesNotRecordHasNoSpan) {
  start();
  ASSERT_EQ(chat("", headers("00")).status, 200);
  ASSERT_EQ(get("/health_generate").status, 200);
  ASSERT_EQ(chat(R"(,"max_tokens":5)").status, 400) << "a key twice";
  ASSERT_EQ(post("/v1/completions", R"({"prompt":"Hi","max_tokens":2})").status, 200);
  std::vector<Json> requests = collector.spans("llm_request", 1);
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(attribute(requests[0], "gen_ai.request.max_tokens"), "2");
}

TEST_F(Tracing, TheFiguresTellWhatWent) {
  start();
  ASSERT_EQ(chat("").status, 200);
  ASSERT_EQ(collector.spans("decode", 1).size(), 1u);
  bool told = eventually([this](const auto&) {
    return get("/metrics").body.find("banyan:spans_exported_total{model_name=\"tiny\"} 4") !=
           std::string::npos;
  });
  EXPECT_TRUE(told);
  EXPECT_NE(get("/metrics").body.find("banyan:spans_dropped_total{model_name=\"tiny\"} 0"),
            std::string::npos);
}

TEST_F(Tracing, NothingIsToldWithoutAnEndpoint) {
  config.traces_endpoint.clear();
  start();
  ASSERT_EQ(chat("", headers("01")).status, 200);
  EXPECT_EQ(get("/metrics").body.find("banyan:spans"), std::string::npos);
}

// The fixture waits for the server to end while the collector still hangs.
TEST_F(Tracing, ACollectorThatHangsHoldsUpNothing) {
  collector.hangs = true;
  start();
  ASSERT_EQ(chat("").status, 200);
  ASSERT_TRUE(collector.was_asked());
  ASSERT_EQ(chat(R"(,"stream":true)").status, 200);
  stop();
}

TEST_F(Tracing, ACollectorThatIsDownHoldsUpNothing) {
  config.traces_endpoint = "http://127.0.0.1:1/v1/traces";
  start();
  ASSERT_EQ(chat("").status, 200);
  ASSERT_EQ(chat(R"(,"stream":true)").status, 200);
  stop();
}

class Exporter : public testing::Test {
 protected:
  TraceCollector collector;
  SpanExporter::Options options = {.endpoint = collector.url(),
                                   .source = {.service_name = "test"},
                                   .queued_max = 8,
                                   .batch_max = 4,
                                   .interval = std::chrono::milliseconds(1),
                                   .pause_min = std::chrono::milliseconds(1)};

  static std::vector<Span> spans(size_t count) {
    return std::vector<Span>(
        count, {.trace_id = std::string(32, 'a'), .span_id = std::string(16, 'b'), .name = "span"});
  }
};

TEST_F(Exporter, WhatIsRefusedForNowIsSentAgain) {
  collector.refusals = 3;
  SpanExporter exporter(options);
  exporter.add(spans(6));
  EXPECT_EQ(collector.spans("span", 6).size(), 6u);
  EXPECT_GE(collector.heads().size(), 5u);
  EXPECT_EQ(exporter.counts().dropped, 0);
}

TEST_F(Exporter, ShowsTheHeadersThatItWasGiven) {
  options.headers = {{"api-key", "secret"}};
  SpanExporter exporter(options);
  exporter.add(spans(1));
  ASSERT_EQ(collector.spans("span", 1).size(), 1u);
  EXPECT_NE(collector.heads()[0].find("api-key: secret\r\n"), std::string::npos);
  EXPECT_EQ(collector.heads()[0].find("Content-Encoding"), std::string::npos);
  options.gzip = true;
  SpanExporter compresses(options);
  collector.hangs = true;
  compresses.add(spans(1));
  while (collector.heads().size() < 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_NE(collector.heads()[1].find("Content-Encoding: gzip\r\n"), std::string::npos);
}

TEST_F(Exporter, WhatIsRefusedForGoodIsDropped) {
  collector.refusal = 400;
  collector.refusals = 1;
  options.batch_max = 3;
  SpanExporter exporter(options);
  exporter.add(spans(6));
  EXPECT_EQ(collector.spans("span", 3).size(), 3u);
  EXPECT_EQ(exporter.counts().dropped, 3);
}

TEST_F(Exporter, WhatDoesNotFitIsDroppedAsAWhole) {
  collector.hangs = true;
  SpanExporter exporter(options);
  exporter.add(spans(9));
  EXPECT_EQ(exporter.counts().dropped, 9);
  exporter.add(spans(1));
  ASSERT_TRUE(collector.was_asked());  // it has left the queue
  exporter.add(spans(8));
  exporter.add(spans(1));
  EXPECT_EQ(exporter.counts().dropped, 10);
  EXPECT_EQ(exporter.counts().exported, 0);
}

TEST_F(Exporter, TheEndSendsWhatIsLeft) {
  options.interval = std::chrono::hours(1);
  options.batch_max = 512;
  {
    SpanExporter exporter(options);
    exporter.add(spans(2));
    exporter.add(spans(3));
  }
  EXPECT_EQ(collector.spans("span", 5).size(), 5u);
}

TEST_F(Exporter, ACollectorWithoutAnAnswerIsTriedAgain) {
  collector.hangs = true;
  options.timeout = std::chrono::milliseconds(50);
  SpanExporter exporter(options);
  exporter.add(spans(2));
  ASSERT_TRUE(collector.was_asked());
  collector.hangs = false;
  EXPECT_EQ(collector.spans("span", 2).size(), 2u);
}

}  // namespace
}  // namespace banyan::tracing_test
