// GET /kv/events: the stream of cache events for routers.
#include <optional>

#include "api/server_fixture.h"
#include "router/fleet_view.h"
#include "support/value_or_abort.h"

namespace banyan::kv_events_test {
namespace {

using test::Client;
using test::Response;
using test::ServerTest;
using test::value_or_abort;

class KvEventsApi : public ServerTest {};

// A router's end of the stream.
class Listener {
 public:
  Listener(Client client, const std::string& target) : client_(std::move(client)) {
    client_.send("GET " + target + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
    head_ = client_.read_until("\r\n\r\n");
  }
  const std::string& head() const { return head_; }

  // Empty: the stream has ended.
  std::optional<KvMessage> next() {
    while (true) {
      if (auto message = value_or_abort(reader_.next())) return message;
      auto size = std::strtoul(client_.read_until("\r\n").c_str(), nullptr, 16);
      if (size == 0) return std::nullopt;
      reader_.add(client_.read_bytes(size));
      client_.read_until("\r\n");
    }
  }
  template <class Part>
  Part next_of() {
    while (true) {
      std::optional<KvMessage> message = next();
      if (!message) return {};
      if (Part* part = std::get_if<Part>(&*message)) return std::move(*part);
    }
  }

 private:
  Client client_;
  std::string head_;
  KvStreamReader reader_;
};

TEST_F(KvEventsApi, AStreamTellsOfPagesAndOfLoad) {
  engine.page_size_tokens = 4;
  engine.state_digest = true;
  start();
  get("/count?tokens=2&prompt=9");
  Listener first(client(), "/kv/events");
  EXPECT_NE(first.head().find("200"), std::string::npos);
  auto hello = first.next_of<KvHello>();
  EXPECT_NE(hello.epoch, 0U);
  EXPECT_EQ(hello.classes.page_size_tokens, 4);
  auto snapshot = first.next_of<KvSnapshotPart>();
  EXPECT_TRUE(snapshot.first && snapshot.last);
  EXPECT_EQ(snapshot.units.size(), 2U) << "of eleven tokens";
  auto load = first.next_of<LoadReport>();
  EXPECT_GT(load.pages_total, 0);
  EXPECT_EQ(load.next_event, snapshot.sequence + 1);

  get("/count?tokens=2&prompt=20");
  auto events = first.next_of<KvEvents>();
  ASSERT_FALSE(events.events.empty());
  EXPECT_EQ(events.events[0].sequence, snapshot.sequence + 1);
  EXPECT_EQ(events.events[0].operation, KvOperation::kStored);

  // Another reader continues where the first began.
  std::string from = "/kv/events?epoch=" + std::to_string(hello.epoch) +
                     "&from=" + std::to_string(snapshot.sequence + 1);
  Listener second(client(), from);
  EXPECT_EQ(second.next_of<KvEvents>().events[0], events.events[0]);
  get("/flush_cache");
  stop();
  while (first.next()) continue;  // it ends in order
}

TEST_F(KvEventsApi, RefusesWhatItCannotTell) {
  start();
  EXPECT_EQ(get("/kv/events").status, 400) << "without a digest";
  stop();
  engine.state_digest = true;
  start();
  EXPECT_EQ(get("/kv/events?epoch=x").status, 400);
  EXPECT_EQ(get("/kv/events?from=-1").status, 400);
}

}  // namespace
}  // namespace banyan::kv_events_test
