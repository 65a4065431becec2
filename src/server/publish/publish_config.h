// What vLLM's --kv-events-config says: where the events of the prefix cache are published.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "banyan/status.h"

namespace banyan {

struct KvPublishConfig {
  bool enabled = false;
  // ZeroMQ's names of addresses. With * or :: in it, and those of ipc:// and inproc://, it is an
  // address of this machine; any other is connected to.
  std::string endpoint = "tcp://*:5557";
  std::string replay_endpoint;      // answers questions for batches that were missed; empty: none
  int64_t batches_kept = 10'000;    // for those
  int high_water_mark = 100'000;    // batches that wait for a slow subscriber; more are dropped
  int64_t events_queued = 100'000;  // that wait to be sent; more, and all are cleared
  std::string topic;

  // A JSON object with vLLM's keys: enable_kv_cache_events, publisher ("zmq" or "null"), endpoint,
  // replay_endpoint, buffer_steps, hwm, max_queue_size, topic. Errors name the key.
  static Result<KvPublishConfig> parse(std::string_view text);
};

}  // namespace banyan
