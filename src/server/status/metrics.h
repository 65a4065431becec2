// What Prometheus reads at /metrics: the names that dashboards of SGLang and of vLLM look for.
//
// Belongs to the I/O thread, which counts what passes through it.
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

// One request of the engine, from submission to end. A duration that was not reached is 0.
struct RequestTimes {
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;
  int64_t generated_tokens = 0;
  int64_t new_tokens_max = 0;
  double queued_s = 0;       // until the first step that computed something for it
  double first_token_s = 0;  // from submission
  double total_s = 0;
  FinishReason finish = FinishReason::kNone;
};

class Metrics {
 public:
  Metrics();
  ~Metrics();

  // The model is loaded: its name is the label of everything.
  void begin(const std::string& model_name, const EngineInfo& info, double load_s);

  void first_token(double since_submission_s);
  void next_token(double since_previous_s);
  void finished(const RequestTimes& times);
  void rejected();
  void step(const StepReport& report);
  // A request came whose output follows a grammar.
  void constrained();

  // What others have counted themselves.
  struct Others {
    std::vector<ExpertCounts> experts;
    GrammarStats grammars;
    size_t grammars_waiting = 0;
    MemoryUse memory;
    std::optional<SpanCounts> spans;
  };
  // In Prometheus's text format.
  std::string text(const Others& others) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace banyan
