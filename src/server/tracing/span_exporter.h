// Sends spans to an OpenTelemetry collector: OTLP over HTTP, in JSON, from a thread of its own.
//
// add() never waits for the collector. While that is down or slow, spans wait in a bounded queue
// and what does not fit is dropped and counted; the log says so once when it begins and once when
// it ends.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "banyan/status.h"
#include "server/tracing/otlp_json.h"
#include "server/tracing/span.h"

namespace banyan {

class SpanExporter {
 public:
  struct Options {
    using Duration = std::chrono::steady_clock::duration;

    std::string endpoint;  // "http://host:4318/v1/traces"; without a path, this one
    SpanSource source;
    size_t queued_max = 8192;  // spans
    size_t batch_max = 512;
    Duration interval = std::chrono::seconds(1);  // after which fewer are sent, too
    Duration timeout = std::chrono::seconds(10);
    Duration pause_min = std::chrono::seconds(1);  // after a failure, doubled up to pause_max
    Duration pause_max = std::chrono::seconds(30);
    // For what is left at the end.
    Duration farewell = std::chrono::milliseconds(1500);
  };

  static Status check_endpoint(const std::string& endpoint);

  // The endpoint was checked.
  explicit SpanExporter(Options options);
  // Sends what is left, within about Options::farewell.
  ~SpanExporter();
  SpanExporter(const SpanExporter&) = delete;
  SpanExporter& operator=(const SpanExporter&) = delete;

  // Takes all of them or, without room, none. From any thread, as counts().
  void add(std::vector<Span> spans);
  SpanCounts counts() const;

 private:
  class Sender;

  std::shared_ptr<Sender> sender_;  // the thread's too
  std::thread thread_;
};

}  // namespace banyan
