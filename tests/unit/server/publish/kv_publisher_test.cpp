// Publishing to a subscriber in this process, and replaying what it missed.
#include "server/publish/kv_publisher.h"

#include <gtest/gtest.h>
#include <zmq.h>

#include <chrono>

#include "base/json.h"
#include "engine/schedule/scheduler.h"
#include "support/shared.h"

namespace banyan::test::kv_publisher_test {
namespace {

constexpr int kPage = 4;

// A socket of another process would be no different.
class Peer {
 public:
  Peer(int type, const std::string& endpoint) : socket_(zmq_socket(context_.get(), type)) {
    int wait_ms = type == ZMQ_SUB ? 100 : 10'000;
    zmq_setsockopt(socket_, ZMQ_RCVTIMEO, &wait_ms, sizeof wait_ms);
    if (type == ZMQ_SUB) zmq_setsockopt(socket_, ZMQ_SUBSCRIBE, "", 0);
    EXPECT_EQ(zmq_connect(socket_, endpoint.c_str()), 0) << zmq_strerror(zmq_errno());
  }
  ~Peer() { zmq_close(socket_); }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  void send(const std::string& frame) { zmq_send(socket_, frame.data(), frame.size(), 0); }
  std::vector<std::string> receive() {
    std::vector<std::string> frames;
    int more = 1;
    for (size_t size = sizeof more; more != 0;) {
      std::string frame(1 << 16, '\0');
      int bytes = zmq_recv(socket_, frame.data(), frame.size(), 0);
      if (bytes < 0) return {};
      frame.resize(static_cast<size_t>(bytes));
      frames.push_back(frame);
      zmq_getsockopt(socket_, ZMQ_RCVMORE, &more, &size);
    }
    return frames;
  }

 private:
  struct End {
    void operator()(void* context) const { zmq_ctx_term(context); }
  };
  std::unique_ptr<void, End> context_{zmq_ctx_new()};
  void* socket_;
};

// A scheduler without a model.
class Worker {
 public:
  Worker() : announcer_(scheduler_.tree(), StateDigest(Digest()), 1) {}

  KvAnnouncer& announcer() { return announcer_; }
  RadixTree& tree() { return scheduler_.tree(); }
  void run(std::vector<TokenId> prompt) {
    auto s = std::make_unique<Sequence>();
    s->id = ++id_;
    s->prompt_tokens = std::ssize(prompt);
    s->tokens_max = s->prompt_tokens + 1;
    s->tokens = std::move(prompt);
    scheduler_.enqueue(std::move(s));
    StepPlan plan;
    for (scheduler_.plan(plan); !plan.spans.empty(); scheduler_.plan(plan)) {
      scheduler_.commit(plan);
      for (const PlannedSpan& span : plan.spans) {
        if (span.sequence->pending() == 0) scheduler_.remove(span.sequence);
      }
    }
  }

 private:
  Scheduler scheduler_{{.running_max = 2,
                        .prefill_rows_max = 64,
                        .classes = {.page_size_tokens = kPage},
                        .units = {40}}};
  KvAnnouncer announcer_;
  SequenceId id_ = 0;
};

class KvPublishing : public testing::Test {
 protected:
  std::string endpoint(const char* name) const { return "ipc://" + folder_.path() + "/" + name; }
  TemporaryFolder folder_;
};

TEST_F(KvPublishing, ASubscriberHearsBatchesAndAsksForWhatItMissed) {
  KvPublishConfig config{.enabled = true,
                         .endpoint = endpoint("events"),
                         .replay_endpoint = endpoint("replay"),
                         .topic = "kv"};
  auto publisher = KvPublisher::open(config);
  ASSERT_TRUE(publisher) << publisher.error().message;
  Worker worker;
  (*publisher)->watch(worker.announcer(), kPage);
  worker.run({1, 2, 3, 4, 5, 6, 7, 8, 9});  // before anybody listens

  std::vector<std::string> missed;
  for (int i = 0; i < 100 && missed.size() != 2; ++i) {  // until the thread has sent it
    Peer asking(ZMQ_REQ, config.replay_endpoint);
    asking.send(std::string(8, '\0'));
    missed = asking.receive();
    if (missed.size() == 2 && missed[1].empty()) missed.clear();
  }
  ASSERT_EQ(missed.size(), 2u);
  EXPECT_EQ(missed[0], std::string(8, '\0'));
  Json batch = Json::from_msgpack(missed[1]);
  EXPECT_EQ(batch[1][0][0], "BlockStored");
  EXPECT_EQ(batch[1][0][2], nullptr);
  EXPECT_EQ(batch[1][0][3], Json({1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(batch[1][0][4], kPage);

  Peer subscriber(ZMQ_SUB, config.endpoint);
  std::vector<std::string> heard;
  TokenId next = 10;
  for (int i = 0; i < 200 && heard.empty(); ++i) {  // until the subscription is known
    worker.run({next, 1, 1, 1, 1});
    ++next;
    heard = subscriber.receive();
  }
  ASSERT_EQ(heard.size(), 3u);
  EXPECT_EQ(heard[0], "kv");
  EXPECT_EQ(heard[1].size(), 8u);
  EXPECT_GT(heard[1][7], 0);
  worker.tree().flush();
  bool cleared = false;
  for (int i = 0; i < 100 && !cleared; ++i) {
    heard = subscriber.receive();
    if (heard.size() != 3) continue;
    batch = Json::from_msgpack(heard[2]);
    for (const Json& event : batch[1]) {
      cleared = cleared || event[0] == "AllBlocksCleared";
    }
  }
  EXPECT_TRUE(cleared);
}

TEST_F(KvPublishing, AddressesThatCannotBeAreNamed) {
  auto refused = KvPublisher::open({.enabled = true, .endpoint = "carrier-pigeon://*:1"});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("carrier-pigeon"), std::string::npos);
}

TEST(KvPublishConfig, HasVllmsKeys) {
  auto config = KvPublishConfig::parse(
      R"({"enable_kv_cache_events": true, "publisher": "zmq", "endpoint": "tcp://*:9",
          "replay_endpoint": null, "buffer_steps": 7, "hwm": 8, "max_queue_size": 9,
          "topic": "t"})");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_TRUE(config->enabled);
  EXPECT_EQ(config->endpoint, "tcp://*:9");
  EXPECT_EQ(config->batches_kept, 7);
  EXPECT_EQ(config->high_water_mark, 8);
  EXPECT_EQ(config->events_queued, 9);
  EXPECT_EQ(config->topic, "t");
  EXPECT_FALSE(KvPublishConfig::parse("{}")->enabled);
  EXPECT_FALSE(
      KvPublishConfig::parse(R"({"enable_kv_cache_events": true, "publisher": "null"})")->enabled);
  for (const char* wrong :
       {"[]", "{", R"({"endpoints": "tcp://*:1"})", R"({"hwm": 0})", R"({"hwm": "1"})",
        R"({"publisher": "nats"})", R"({"enable_kv_cache_events": 1})",
        R"({"enable_kv_cache_events": true, "endpoint": ""})", R"({"topic": null})"}) {
    EXPECT_FALSE(KvPublishConfig::parse(wrong)) << wrong;
  }
}

}  // namespace
}  // namespace banyan::test::kv_publisher_test
