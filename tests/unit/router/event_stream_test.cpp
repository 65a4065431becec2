// The wire format of cache events: round trips in pieces of any size, and damaged streams.
#include "router/event_stream.h"

#include <gtest/gtest.h>

#include "support/value_or_abort.h"

namespace banyan::event_stream_test {
namespace {

PageKey key_of(uint8_t byte) {
  PageKey key;
  key.bytes.fill(byte);
  return key;
}

KvHello hello() {
  KvHello hello{.epoch = 7, .next = 3};
  hello.states.bytes[5] = 9;
  hello.classes = {.page_size_tokens = 64,
                   .classes = {UnitClass{}, {.reach = StateReach::kWindow, .window_tokens = 512}},
                   .count = 2};
  return hello;
}

TEST(EventStream, ArrivesInWhateverPieces) {
  KvEvents events{{{.sequence = 3, .unit = {.page = key_of(1)}, .parent = key_of(2)},
                   {.sequence = 4, .operation = KvOperation::kCleared}}};
  KvSnapshotPart part{.sequence = 4, .first = true, .last = true};
  part.units = {{.page = key_of(3), .unit_class = 1, .tier = KvTier::kStorage}};
  LoadReport load{.waiting_tokens = 1,
                  .waiting = 2,
                  .running = 3,
                  .pages_free = 4,
                  .pages_total = 5,
                  .prefill_tokens_s = 6.5,
                  .step_ms = 7.5,
                  .next_event = 8};
  std::string bytes;
  for (const KvMessage& message :
       {KvMessage(hello()), KvMessage(events), KvMessage(part), KvMessage(load)}) {
    write_kv_message(message, bytes);
  }
  for (size_t size : {size_t{1}, size_t{7}, bytes.size()}) {
    KvStreamReader reader;
    std::vector<KvMessage> messages;
    for (size_t begin = 0; begin < bytes.size(); begin += size) {
      reader.add(std::string_view(bytes).substr(begin, size));
      while (auto message = test::value_or_abort(reader.next())) messages.push_back(*message);
    }
    ASSERT_EQ(messages.size(), 4U);
    const auto& got = std::get<KvHello>(messages[0]);
    EXPECT_EQ(got.states, hello().states);
    EXPECT_EQ(got.classes[1], hello().classes[1]);
    EXPECT_EQ(got.epoch, 7U);
    EXPECT_EQ(std::get<KvEvents>(messages[1]).events, events.events);
    EXPECT_EQ(std::get<KvSnapshotPart>(messages[2]).units, part.units);
    EXPECT_TRUE(std::get<KvSnapshotPart>(messages[2]).last);
    EXPECT_EQ(std::get<LoadReport>(messages[3]), load);
  }
}

TEST(EventStream, RefusesWhatIsDamaged) {
  std::string begin;
  write_kv_message(hello(), begin);
  auto error_of = [](std::string bytes) {
    KvStreamReader reader;
    reader.add(bytes);
    while (true) {
      auto message = reader.next();
      if (!message) return message.error().message;
      if (!message->has_value()) return std::string();
    }
  };
  EXPECT_EQ(error_of(begin), "");
  EXPECT_NE(error_of(std::string(5, '\0')), "") << "no hello first";
  EXPECT_NE(error_of(begin + std::string(5, '\xff')), "") << "a frame of 4 GB";
  std::string other = begin;
  other[5] = 2;
  EXPECT_NE(error_of(other), "") << "another version";
  // Whatever byte changes: an answer, not a crash.
  std::string events = begin;
  write_kv_message(KvEvents{{{.sequence = 1}}}, events);
  write_kv_message(LoadReport{}, events);
  for (size_t i = 0; i < events.size(); ++i) {
    for (int change : {1, 0x80, 0xff}) {
      std::string damaged = events;
      damaged[i] = static_cast<char>(damaged[i] ^ change);
      error_of(damaged);
    }
    EXPECT_EQ(error_of(events.substr(0, i)), "") << "the rest may come yet";
  }
}

}  // namespace
}  // namespace banyan::event_stream_test
