// Spans: what a caller's headers ask for, what is told of a request, and how OTLP writes it.
#include <gtest/gtest.h>

#include <array>

#include "server/config.h"
#include "server/tracing/otlp_json.h"
#include "server/tracing/request_spans.h"
#include "server/tracing/trace_context.h"

namespace banyan {
namespace {

const std::string kTraceId = "0af7651916cd43dd8448eb211c80319c", kParentId = "b7ad6b7169203331";

std::string traceparent(const std::string& version, const std::string& flags) {
  return version + "-" + kTraceId + "-" + kParentId + "-" + flags;
}

TEST(Tracing, ARequestJoinsItsCallersTrace) {
  for (const std::string& header : {traceparent("00", "01"), traceparent("00", "ff"),
                                    traceparent("cc", "01"), traceparent("cc", "01") + "-more"}) {
    auto context = trace_context(header, "vendor=1");
    ASSERT_TRUE(context) << header;
    EXPECT_EQ(context->trace_id, kTraceId) << header;
    EXPECT_EQ(context->parent_id, kParentId) << header;
    EXPECT_EQ(context->state, "vendor=1") << header;
  }
  EXPECT_EQ(trace_context(traceparent("00", "01"), std::string(513, 'x'))->state, "");
}

TEST(Tracing, NothingIsToldOfWhatTheCallerDoesNotRecord) {
  EXPECT_FALSE(trace_context(traceparent("00", "00"), std::nullopt));
  EXPECT_FALSE(trace_context(traceparent("00", "02"), std::nullopt));
}

TEST(Tracing, AWrongHeaderBeginsATrace) {
  std::string good = traceparent("00", "01"), upper = good, zero_trace = good, zero_parent = good;
  upper[4] = 'A';
  zero_trace.replace(3, 32, 32, '0');
  zero_parent.replace(36, 16, 16, '0');
  for (const std::string& header :
       {std::string(), std::string("00"), good.substr(0, 54), good + "-more", good + "x", upper,
        zero_trace, zero_parent, traceparent("ff", "01"), traceparent("0g", "01"),
        traceparent("00", "0x"), std::string(55, '-')}) {
    auto context = trace_context(header, "vendor=1");
    ASSERT_TRUE(context) << header;
    EXPECT_NE(context->trace_id, kTraceId) << header;
    EXPECT_EQ(context->trace_id.size(), 32u) << header;
    EXPECT_EQ(context->parent_id, "") << header;
    EXPECT_EQ(context->state, "") << header;
  }
  EXPECT_NE(trace_context(std::nullopt, std::nullopt)->trace_id,
            trace_context(std::nullopt, std::nullopt)->trace_id);
}

TracedRequest finished_request() {
  return {.id = "cmpl-1",
          .model = "nano",
          .temperature = 0.5f,
          .top_p = 1,
          .times = {.prompt_tokens = 7,
                    .cached_tokens = 4,
                    .generated_tokens = 3,
                    .new_tokens_max = 9,
                    .queued_s = 0.5,
                    .first_token_s = 1,
                    .total_s = 3,
                    .finish = FinishReason::kStop},
          .read_s = 0.25,
          .end_ns = 10'000'000'000};
}

TEST(Tracing, ARequestIsTheSumOfItsParts) {
  RequestTrace trace = {.context = {.trace_id = kTraceId, .parent_id = kParentId}};
  std::vector<Span> spans = request_spans(trace, finished_request());
  ASSERT_EQ(spans.size(), 4u);
  EXPECT_EQ(spans[0].parent_id, kParentId);
  EXPECT_EQ(spans[0].start_ns, 6'750'000'000);
  EXPECT_EQ(spans[0].end_ns, 10'000'000'000);
  EXPECT_FALSE(spans[0].error);
  std::array<int64_t, 4> times = {7'000'000'000, 7'500'000'000, 8'000'000'000, 10'000'000'000};
  for (size_t i = 1; i < spans.size(); ++i) {
    EXPECT_EQ(spans[i].trace_id, kTraceId);
    EXPECT_EQ(spans[i].parent_id, spans[0].span_id);
    EXPECT_EQ(spans[i].start_ns, times[i - 1]);
    EXPECT_EQ(spans[i].end_ns, times[i]);
  }
}

TEST(Tracing, AFailureSaysWhyAndHasNoParts) {
  TracedRequest request = finished_request();
  request.times = {.total_s = 1, .finish = FinishReason::kError};
  request.error = {ErrorCode::kExhausted, "the queue is full"};
  std::vector<Span> spans = request_spans({.context = {.trace_id = kTraceId}}, request);
  ASSERT_EQ(spans.size(), 1u);
  EXPECT_EQ(spans[0].error, "the queue is full");
  Span::Value status = int64_t{503};
  EXPECT_EQ(spans[0].attributes.back().second, status);
  request.times.finish = FinishReason::kCancelled;
  request.error = {};
  EXPECT_FALSE(request_spans({.context = {.trace_id = kTraceId}}, request)[0].error);
}

TEST(Tracing, OtlpHasItsShape) {
  std::vector<Span> spans(2);
  spans[0] = {.trace_id = kTraceId,
              .span_id = "00f067aa0ba902b7",
              .parent_id = kParentId,
              .trace_state = "vendor=1",
              .parent_is_remote = true,
              .name = "llm_request",
              .kind = Span::Kind::kServer,
              .start_ns = 1'544'712'660'000'000'001,
              .end_ns = 1'544'712'661'000'000'000,
              .attributes = {{"text", "a\xff"},
                             {"integer", int64_t{5}},
                             {"real", 0.5},
                             {"list", std::vector<std::string>{"stop"}}},
              .error = "it broke"};
  spans[1] = {.trace_id = kTraceId, .span_id = "00f067aa0ba902b8", .name = "queue"};
  EXPECT_EQ(
      otlp_json({.service_name = "banyan", .version = "1.2"}, spans),
      R"({"resourceSpans":[{"resource":{"attributes":[)"
      R"({"key":"service.name","value":{"stringValue":"banyan"}},)"
      R"({"key":"service.version","value":{"stringValue":"1.2"}}]},)"
      R"("scopeSpans":[{"scope":{"name":"banyan","version":"1.2"},"spans":[)"
      R"({"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"00f067aa0ba902b7",)"
      R"("traceState":"vendor=1","parentSpanId":"b7ad6b7169203331","flags":769,)"
      R"("name":"llm_request","kind":2,"startTimeUnixNano":"1544712660000000001",)"
      R"("endTimeUnixNano":"1544712661000000000","attributes":[)"
      "{\"key\":\"text\",\"value\":{\"stringValue\":\"a\uFFFD\"}},"
      R"({"key":"integer","value":{"intValue":"5"}},)"
      R"({"key":"real","value":{"doubleValue":0.5}},)"
      R"({"key":"list","value":{"arrayValue":{"values":[{"stringValue":"stop"}]}}}],)"
      R"("status":{"message":"it broke","code":2}},)"
      R"({"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"00f067aa0ba902b8","flags":257,)"
      R"("name":"queue","kind":1,"startTimeUnixNano":"0","endTimeUnixNano":"0"}]}]}]})");
}

TEST(Tracing, TheEndpointIsHttp) {
  auto refusal = [](const std::string& endpoint) {
    ServerConfig config = {.traces_endpoint = endpoint};
    Status valid = config.validate();
    return valid ? "" : valid.error().message;
  };
  EXPECT_EQ(refusal("http://localhost:4318/v1/traces"), "");
  EXPECT_EQ(refusal("localhost:4318"), "");
  EXPECT_EQ(refusal("https://localhost:4318/v1/traces"),
            "--otlp-traces-endpoint \"https://localhost:4318/v1/traces\": only http:// URLs are "
            "supported");
  EXPECT_NE(refusal("http://localhost:port"), "");
}

}  // namespace
}  // namespace banyan
