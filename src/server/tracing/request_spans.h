// The spans of a request of the engine, by the names that vLLM and SGLang give them.
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

// What a request of a client brings for the spans of all its choices.
struct RequestTrace {
  TraceContext context;
  std::chrono::steady_clock::time_point received = std::chrono::steady_clock::now();
  int64_t samples = 1;
};

// One choice that has ended.
struct TracedRequest {
  std::string id;
  std::string model;
  float temperature = 1, top_p = 1;
  RequestTimes times;  // from its submission on
  double read_s = 0;   // from when it came to its submission
  int64_t end_ns = 0;  // Unix time
  Error error = {};    // of what ended with kError
};

// "llm_request", and within it "queue", "prefill" and "decode" if there was a token.
std::vector<Span> request_spans(const RequestTrace& trace, const TracedRequest& request);

}  // namespace banyan
