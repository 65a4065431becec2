// Sends spans to an OpenTelemetry collector: OTLP over HTTP, in JSON, from its own thread.
//
// add() never waits for the collector. While the collector is down or slow, spans wait in a bounded
// queue; spans that do not fit are dropped and counted. The log gets one line when this starts and
// one when it ends.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "banyan/status.h"
#include "server/tracing/otlp_json.h"
#include "server/tracing/span.h"

namespace banyan {

class SpanExporter {
 public:
  struct Options {
    using Duration = std::chrono::steady_clock::duration;

    std::string endpoint;  // "http://host:4318/v1/traces"; that path is the default
    std::vector<std::pair<std::string, std::string>> headers = {};  // of every request
    bool gzip = false;
    SpanSource source;
    size_t queued_max = 8192;  // spans
    size_t batch_max = 512;
    Duration interval = std::chrono::seconds(1);  // maximum delay of a partial batch
    Duration timeout = std::chrono::seconds(10);
    Duration pause_min = std::chrono::seconds(1);  // after a failure; doubles up to pause_max
    Duration pause_max = std::chrono::seconds(30);
    // Time limit for the remaining spans at shutdown.
    Duration farewell = std::chrono::milliseconds(1500);
  };

  static Status check_endpoint(const std::string& endpoint);

  // Requires check_endpoint() to have passed.
  explicit SpanExporter(Options options);
  // Sends the remaining spans, within about Options::farewell.
  ~SpanExporter();
  SpanExporter(const SpanExporter&) = delete;
  SpanExporter& operator=(const SpanExporter&) = delete;

  // Queues all of the spans or, without room, none. add() and counts() are safe from any thread.
  void add(std::vector<Span> spans);
  SpanCounts counts() const;

 private:
  class Sender;

  std::shared_ptr<Sender> sender_;  // shared with the thread
  std::thread thread_;
};

}  // namespace banyan
