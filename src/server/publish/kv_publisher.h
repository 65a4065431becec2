// Publishes events of the prefix cache over ZeroMQ, as vLLM's workers do: batches of three frames,
// {topic, number, msgpack}, the number 8 bytes with the highest first, from 0 on. A subscriber that
// misses some asks the replay address {number} and is sent {number, msgpack} of all from there on
// that are kept, and {-1, nothing} at the end.
//
// ZeroMQ drops batches for who does not keep up or comes late. Token ids leave the process here,
// unlike in GET /kv/events: anyone who can connect to the endpoint can read prompts.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "cache/kv_announcer.h"
#include "server/publish/block_events.h"
#include "server/publish/publish_config.h"

namespace banyan {

class KvPublisher {
 public:
  // Opens the addresses; errors name them.
  static Result<std::unique_ptr<KvPublisher>> open(const KvPublishConfig& config);
  // Sends what is left.
  ~KvPublisher();
  KvPublisher(const KvPublisher&) = delete;
  KvPublisher& operator=(const KvPublisher&) = delete;

  // Starts to publish announced events, in pages of this many tokens. Call once, on the announcer's
  // thread. Nothing may be announced there when the publisher is destroyed.
  void watch(KvAnnouncer& announcer, int64_t page_size_tokens);

 private:
  struct Close {
    void operator()(void* socket) const;
  };
  struct End {
    void operator()(void* context) const;
  };
  using Socket = std::unique_ptr<void, Close>;
  struct Batch {
    uint64_t number = 0;
    std::string bytes;
  };

  explicit KvPublisher(const KvPublishConfig& config)
      : config_(config), queue_(config.events_queued) {}
  Result<Socket> socket(int type, const std::string& endpoint, bool binds);
  void run();
  void publish();
  void answer_replays();

  const KvPublishConfig config_;
  std::unique_ptr<void, End> context_;
  Socket events_, replay_;  // of the thread; replay_ null: none
  BlockQueue queue_;
  int64_t page_size_tokens_ = 0;
  std::deque<Batch> kept_;
  uint64_t next_ = 0;
  int64_t overflows_ = 0;  // number reported

  std::mutex mutex_;
  std::condition_variable changed_;
  bool waiting_ = false;  // events are queued
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace banyan
