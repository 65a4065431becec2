// The contents of vLLM's --kv-events-config: where the events of the prefix cache are published.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "banyan/status.h"

namespace banyan {

struct KvPublishConfig {
  bool enabled = false;
  // ZeroMQ addresses. One with * or ::, or of ipc:// or inproc://, is bound on this machine; any
  // other is connected to.
  std::string endpoint = "tcp://*:5557";
  std::string replay_endpoint;      // answers requests for missed batches; empty: none
  int64_t batches_kept = 10'000;    // for replay
  int high_water_mark = 100'000;    // batches that wait for a slow subscriber; more are dropped
  int64_t events_queued = 100'000;  // waiting to be sent; beyond this, all are cleared
  std::string topic;

  // A JSON object with vLLM's keys: enable_kv_cache_events, publisher ("zmq" or "null"), endpoint,
  // replay_endpoint, buffer_steps, hwm, max_queue_size, topic. Errors name the key.
  static Result<KvPublishConfig> parse(std::string_view text);
};

}  // namespace banyan
