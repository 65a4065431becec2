// Builds the spans of an engine request, with the names that vLLM and SGLang use. Stateless;
// thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "banyan/status.h"
#include "server/status/metrics.h"
#include "server/tracing/span.h"
#include "server/tracing/trace_context.h"

namespace banyan {

// Trace data of a client request, shared by the spans of all its choices.
struct RequestTrace {
  TraceContext context;
  std::chrono::steady_clock::time_point received = std::chrono::steady_clock::now();
  int64_t samples = 1;
};

// A finished choice.
struct TracedRequest {
  std::string id;
  std::string model;
  float temperature = 1, top_p = 1;
  RequestTimes times;  // from its submission
  double read_s = 0;   // from arrival to submission
  int64_t end_ns = 0;  // Unix time
  Error error = {};    // if it ended with kError
};

// "llm_request" and, if there was a token, its children "queue", "prefill" and "decode".
std::vector<Span> request_spans(const RequestTrace& trace, const TracedRequest& request);

}  // namespace banyan
