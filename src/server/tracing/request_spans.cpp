#include "server/tracing/request_spans.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "server/error.h"

namespace banyan {
namespace {

constexpr size_t kSpanIdBytes = 8;

int64_t to_ns(double seconds) {
  return std::llround(seconds * 1e9);
}

void add_latencies(const TracedRequest& request, Span& span) {
  const RequestTimes& times = request.times;
  auto add = [&](std::string_view name, double value) {
    span.attributes.emplace_back(name, value);
  };
  add("gen_ai.latency.e2e", request.read_s + times.total_s);
  if (times.generated_tokens == 0) return;
  add("gen_ai.latency.time_in_queue", times.queued_s);
  add("gen_ai.latency.time_to_first_token", request.read_s + times.first_token_s);
  add("gen_ai.latency.time_in_model_prefill", std::max(0.0, times.first_token_s - times.queued_s));
  add("gen_ai.latency.time_in_model_decode", std::max(0.0, times.total_s - times.first_token_s));
  add("gen_ai.latency.time_in_model_inference", std::max(0.0, times.total_s - times.queued_s));
}

void add_attributes(const RequestTrace& trace, const TracedRequest& request, Span& span) {
  const RequestTimes& times = request.times;
  span.attributes = {
      {"gen_ai.request.id", request.id},
      {"gen_ai.response.model", request.model},
      {"gen_ai.request.max_tokens", times.new_tokens_max},
      {"gen_ai.request.temperature", static_cast<double>(request.temperature)},
      {"gen_ai.request.top_p", static_cast<double>(request.top_p)},
      {"gen_ai.request.n", trace.samples},
      {"gen_ai.usage.prompt_tokens", times.prompt_tokens},
      {"gen_ai.usage.completion_tokens", times.generated_tokens},
      {"gen_ai.usage.cached_tokens", times.cached_tokens},
      {"gen_ai.response.finish_reasons", std::vector<std::string>{to_string(times.finish)}},
  };
  add_latencies(request, span);
}

void add_failure(const TracedRequest& request, Span& span) {
  FinishReason finish = request.times.finish;
  if (finish != FinishReason::kError && finish != FinishReason::kTimeout) return;
  bool told = !request.error.message.empty();
  span.error = told ? request.error.message : to_string(finish);
  if (!told) return;
  span.attributes.emplace_back("error.type", to_string(request.error.code));
  if (request.times.generated_tokens > 0) return;  // a stream had sent its status before it failed
  span.attributes.emplace_back("http.response.status_code",
                               int64_t{http_status(request.error.code)});
}

}  // namespace

std::vector<Span> request_spans(const RequestTrace& trace, const TracedRequest& request) {
  const RequestTimes& times = request.times;
  int64_t submitted_ns = request.end_ns - to_ns(times.total_s);
  std::vector<Span> spans;
  Span& root = spans.emplace_back();
  root = {.trace_id = trace.context.trace_id,
          .span_id = random_trace_id(kSpanIdBytes),
          .parent_id = trace.context.parent_id,
          .trace_state = trace.context.state,
          .parent_is_remote = !trace.context.parent_id.empty(),
          .name = "llm_request",
          .kind = Span::Kind::kServer,
          .start_ns = submitted_ns - to_ns(request.read_s),
          .end_ns = request.end_ns};
  add_attributes(trace, request, root);
  add_failure(request, root);
  if (times.generated_tokens == 0) return spans;

  std::string parent = root.span_id;
  int64_t first_ns = submitted_ns + to_ns(times.first_token_s);
  int64_t begun_ns = std::min(submitted_ns + to_ns(times.queued_s), first_ns);
  auto add = [&](std::string_view name, int64_t start_ns, int64_t end_ns) {
    spans.push_back({.trace_id = trace.context.trace_id,
                     .span_id = random_trace_id(kSpanIdBytes),
                     .parent_id = parent,
                     .trace_state = trace.context.state,
                     .name = name,
                     .start_ns = start_ns,
                     .end_ns = end_ns});
  };
  add("queue", submitted_ns, begun_ns);
  add("prefill", begun_ns, first_ns);
  add("decode", first_ns, std::max(first_ns, request.end_ns));
  return spans;
}

}  // namespace banyan
