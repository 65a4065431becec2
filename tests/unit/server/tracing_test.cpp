// Spans: incoming trace headers, the attributes of a request's spans, and their OTLP form.
#include <gtest/gtest.h>

#include <array>
#include <boost/beast/zlib/inflate_stream.hpp>
#include <boost/crc.hpp>
#include <cstring>
#include <map>

#include "server/config.h"
#include "server/tracing/gzip.h"
#include "server/tracing/otel_environment.h"
#include "server/tracing/otlp_json.h"
#include "server/tracing/request_spans.h"
#include "server/tracing/trace_context.h"

namespace banyan::tracing_test {
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

// The environment of a test's own.
Result<OtelEnvironment> otel(const std::map<std::string, std::string>& variables) {
  return OtelEnvironment::read([&](const std::string& name) {
    auto found = variables.find(name);
    return found == variables.end() ? std::string() : found->second;
  });
}

TEST(Tracing, ReadsTheEnvironmentOfOpenTelemetry) {
  OtelEnvironment none = otel({}).value();
  EXPECT_EQ(none.endpoint, "");
  EXPECT_TRUE(none.headers.empty());
  EXPECT_FALSE(none.gzip);
  OtelEnvironment all = otel({{"OTEL_EXPORTER_OTLP_ENDPOINT", "https://a.example/x/"},
                              {"OTEL_EXPORTER_OTLP_HEADERS", "api-key=a%20b=c , X-Two=2,"},
                              {"OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"},
                              {"OTEL_SERVICE_NAME", "mine"}})
                            .value();
  EXPECT_EQ(all.endpoint, "https://a.example/x/v1/traces");
  using Headers = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(all.headers, (Headers{{"api-key", "a b=c"}, {"X-Two", "2"}}));
  EXPECT_TRUE(all.gzip);
  EXPECT_EQ(all.service_name, "mine");
  OtelEnvironment traces = otel({{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://a"},
                                 {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://b/c"},
                                 {"OTEL_EXPORTER_OTLP_HEADERS", "a=1"},
                                 {"OTEL_EXPORTER_OTLP_TRACES_HEADERS", "b=2"}})
                               .value();
  EXPECT_EQ(traces.endpoint, "http://b/c");
  EXPECT_EQ(traces.headers, (Headers{{"b", "2"}}));
  for (const char* wrong : {"a", "=1", "a b=1", "a=1\r\nX: y", "a=%0d%0aX: y"}) {
    auto refused = otel({{"OTEL_EXPORTER_OTLP_HEADERS", wrong}});
    ASSERT_FALSE(refused) << wrong;
    EXPECT_NE(refused.error().message.find("OTEL_EXPORTER_OTLP_HEADERS"), std::string::npos);
  }
  EXPECT_FALSE(otel({{"OTEL_EXPORTER_OTLP_COMPRESSION", "zstd"}}));
}

// Takes apart what gzip() made, and checks its sums.
std::string gunzip(std::string_view bytes) {
  namespace zlib = boost::beast::zlib;
  EXPECT_TRUE(bytes.starts_with("\x1f\x8b\x08"));
  std::string_view deflated = bytes.substr(10, bytes.size() - 18);
  std::string text(1 << 20, 0);
  zlib::inflate_stream stream;
  zlib::z_params params;
  params.next_in = deflated.data();
  params.avail_in = deflated.size();
  params.next_out = text.data();
  params.avail_out = text.size();
  boost::system::error_code ec;
  stream.write(params, zlib::Flush::finish, ec);
  EXPECT_EQ(ec, zlib::error::end_of_stream);
  text.resize(params.total_out);
  boost::crc_32_type crc;
  crc.process_bytes(text.data(), text.size());
  uint32_t sums[2] = {};
  std::memcpy(sums, bytes.data() + bytes.size() - 8, 8);
  EXPECT_EQ(sums[0], crc.checksum());
  EXPECT_EQ(sums[1], text.size());
  return text;
}

TEST(Tracing, CompressesWhatOthersCanRead) {
  std::string text;
  for (const char* piece : {"", "a", "spans and more spans, "}) {
    for (int i = 0; i < 1000; ++i) text += piece;
    std::string zipped = gzip(text);
    EXPECT_EQ(gunzip(zipped), text);
    EXPECT_LT(zipped.size(), 40 + text.size() / 10);
  }
}

TEST(Tracing, TheEndpointIsHttp) {
  auto refusal = [](const std::string& endpoint) {
    ServerConfig config = {.traces_endpoint = endpoint};
    Status valid = config.validate();
    return valid ? "" : valid.error().message;
  };
  EXPECT_EQ(refusal("http://localhost:4318/v1/traces"), "");
  EXPECT_EQ(refusal("localhost:4318"), "");
  EXPECT_EQ(refusal("https://localhost:4318/v1/traces"), "");
  EXPECT_EQ(refusal("grpc://localhost:4317"),
            "--otlp-traces-endpoint \"grpc://localhost:4317\": only http:// and https:// URLs are "
            "supported");
  EXPECT_NE(refusal("http://localhost:port"), "");
  EXPECT_EQ(refusal("foo"),
            "--otlp-traces-endpoint \"foo\" is not a URL such as http://localhost:4318/v1/traces");
}

}  // namespace
}  // namespace banyan::tracing_test
