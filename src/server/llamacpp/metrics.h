// The /metrics values that dashboards of llama.cpp's server read. Stateless; thread-safe.
#pragma once

#include <string>

#include "banyan/engine.h"

namespace banyan {

struct LlamaFigures {
  EngineStats stats;
  double prompt_s = 0, predicted_s = 0;  // over all requests
  int64_t tokens_max = 0;                // of the longest request, prompt and output
};

// In Prometheus's text format, without labels, as in llama.cpp.
std::string llama_metrics(const LlamaFigures& figures);

}  // namespace banyan
