// The Prometheus metrics at /metrics, under the names that SGLang and vLLM dashboards use.
//
// Belongs to the I/O thread, which does the counting.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "banyan/engine.h"
#include "banyan/grammar.h"
#include "llm/engine_thread.h"
#include "server/status/memory_use.h"
#include "server/tracing/span.h"

namespace banyan {

// One engine request, from submission to end. Durations that were not reached are 0.
struct RequestTimes {
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;
  int64_t generated_tokens = 0;
  int64_t new_tokens_max = 0;
  double queued_s = 0;       // until its first computation in a step
  double first_token_s = 0;  // from submission
  double total_s = 0;
  FinishReason finish = FinishReason::kNone;
};

class Metrics {
 public:
  Metrics();
  ~Metrics();

  // Called when the model is loaded; its name becomes the label of all metrics.
  void begin(const std::string& model_name, const EngineInfo& info, double load_s);

  void first_token(double since_submission_s);
  void next_token(double since_previous_s);
  void finished(const RequestTimes& times);
  void rejected();
  void step(const StepReport& report);
  // Counts a request with a grammar.
  void constrained();

  // Values that other components count.
  struct Others {
    std::vector<ExpertCounts> experts;
    GrammarStats grammars;
    size_t grammars_waiting = 0;
    MemoryUse memory;
    std::optional<SpanCounts> spans;
    std::vector<GeneratorFigure> generator;
    int adapters_max = 0;
    std::vector<AdapterInfo> adapters;
  };
  // Renders Prometheus's text format.
  std::string text(const Others& others) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace banyan
