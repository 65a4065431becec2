#include "router/event_stream.h"

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "base/signed.h"

namespace banyan {
namespace {

enum class FrameType : uint8_t { kHello = 1, kEvents = 2, kSnapshot = 3, kLoad = 4 };

constexpr size_t kHeaderBytes = 5;
constexpr uint8_t kFirstPart = 1, kLastPart = 2;
constexpr int kPageSizeMax = 1024;
constexpr int64_t kWindowMax = int64_t{1} << 40;
// The buffer of read bytes is compacted when it exceeds this.
constexpr size_t kReadBytesMax = size_t{1} << 16;

static_assert(std::endian::native == std::endian::little);

class FrameWriter {
 public:
  FrameWriter(FrameType type, std::string& bytes) : bytes_(bytes), begin_(bytes.size()) {
    put(uint32_t{0}).put(static_cast<uint8_t>(type));
  }
  ~FrameWriter() {
    auto length = static_cast<uint32_t>(bytes_.size() - begin_ - kHeaderBytes);
    CHECK(length <= kKvFrameBytesMax);
    std::memcpy(bytes_.data() + begin_, &length, sizeof length);
  }
  FrameWriter(const FrameWriter&) = delete;
  FrameWriter& operator=(const FrameWriter&) = delete;

  template <class T>
  FrameWriter& put(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  template <size_t size>
  FrameWriter& put(const std::array<uint8_t, size>& value) {
    bytes_.append(reinterpret_cast<const char*>(value.data()), size);
    return *this;
  }
  FrameWriter& put(const KvUnit& unit) {
    return put(unit.unit_class).put(static_cast<uint8_t>(unit.tier)).put(unit.page.bytes);
  }

 private:
  std::string& bytes_;
  size_t begin_;
};

// Reading past the end yields zeros, and done() then fails.
class FrameReader {
 public:
  explicit FrameReader(std::string_view payload) : left_(payload) {}

  template <class T>
  T take() {
    T value = {};
    if (left_.size() < sizeof value) {
      short_ = true;
      return value;
    }
    std::memcpy(&value, left_.data(), sizeof value);
    left_.remove_prefix(sizeof value);
    return value;
  }
  bool is_short() const { return short_; }
  Status done(std::string_view what) const {
    if (short_) return corrupt("KV events: a {} frame ends too early", what);
    if (!left_.empty()) {
      return corrupt("KV events: a {} frame has {} bytes too many", what, left_.size());
    }
    return {};
  }

 private:
  std::string_view left_;
  bool short_ = false;
};

void write(const KvHello& hello, std::string& bytes) {
  FrameWriter frame(FrameType::kHello, bytes);
  frame.put(kKvStreamVersion).put(hello.epoch).put(hello.next).put(hello.states.bytes);
  frame.put(narrow<uint32_t>(hello.classes.page_size_tokens));
  frame.put(narrow<uint8_t>(hello.classes.count));
  for (int c = 0; c < hello.classes.count; ++c) {
    const UnitClass& unit_class = hello.classes[c];
    frame.put(static_cast<uint8_t>(unit_class.unit)).put(static_cast<uint8_t>(unit_class.reach));
    frame.put(static_cast<uint8_t>(unit_class.advisory)).put(unit_class.window_tokens);
  }
  frame.put(narrow<uint32_t>(hello.classes.resume_alignment_tokens));
}

void write(const KvEvents& message, std::string& bytes) {
  CHECK(!message.events.empty() && message.events.size() <= kKvFrameEventsMax);
  FrameWriter frame(FrameType::kEvents, bytes);
  frame.put(message.events.front().sequence).put(narrow<uint32_t>(message.events.size()));
  for (const KvEvent& event : message.events) {
    frame.put(static_cast<uint8_t>(event.operation)).put(event.unit).put(event.parent.bytes);
  }
}

void write(const KvSnapshotPart& part, std::string& bytes) {
  CHECK(part.units.size() <= kKvFrameEventsMax);
  FrameWriter frame(FrameType::kSnapshot, bytes);
  int flags = (part.first ? kFirstPart : 0) | (part.last ? kLastPart : 0);
  frame.put(part.sequence).put(static_cast<uint8_t>(flags));
  frame.put(static_cast<uint32_t>(part.units.size()));
  for (const KvUnit& unit : part.units) frame.put(unit);
}

void write(const LoadReport& report, std::string& bytes) {
  FrameWriter frame(FrameType::kLoad, bytes);
  frame.put(report.waiting_tokens).put(report.waiting).put(report.running);
  frame.put(report.pages_free).put(report.pages_total);
  frame.put(report.prefill_tokens_s).put(report.step_ms).put(report.next_event);
}

Result<UnitClass> read_class(FrameReader& frame) {
  auto unit = frame.take<uint8_t>(), reach = frame.take<uint8_t>(),
       advisory = frame.take<uint8_t>();
  auto window = frame.take<int64_t>();
  bool known = unit <= static_cast<uint8_t>(StateUnit::kSlot) &&
               reach <= static_cast<uint8_t>(StateReach::kNone) && advisory <= 1;
  if (!known || window < 0 || window > kWindowMax) {
    return corrupt("KV events: a class of unit {}, reach {}, advisory {}, window {}", unit, reach,
                   advisory, window);
  }
  return UnitClass{.unit = static_cast<StateUnit>(unit),
                   .reach = static_cast<StateReach>(reach),
                   .window_tokens = window,
                   .advisory = advisory != 0};
}

Result<KvMessage> read_hello(FrameReader& frame) {
  auto version = frame.take<uint32_t>();
  if (version != kKvStreamVersion) {
    return unsupported("KV events of version {}; this program reads version {}", version,
                       kKvStreamVersion);
  }
  KvHello hello{.epoch = frame.take<uint64_t>(), .next = frame.take<uint64_t>()};
  for (uint8_t& byte : hello.states.bytes) byte = frame.take<uint8_t>();
  auto page_size = frame.take<uint32_t>();
  auto count = frame.take<uint8_t>();
  if (page_size < 1 || page_size > kPageSizeMax || count < 1 || count > kUnitClassesMax) {
    return corrupt("KV events: pages of {} tokens, {} classes", page_size, count);
  }
  hello.classes.page_size_tokens = static_cast<int>(page_size);
  hello.classes.count = count;
  for (size_t c = 0; c < count; ++c) hello.classes.classes[c] = TRY(read_class(frame));
  hello.classes.resume_alignment_tokens = static_cast<int>(frame.take<uint32_t>() & 0x7fffffffU);
  TRY(frame.done("hello"));
  return hello;
}

Result<KvUnit> read_unit(FrameReader& frame) {
  auto unit_class = frame.take<uint8_t>(), tier = frame.take<uint8_t>();
  auto key = frame.take<std::array<uint8_t, 16>>();
  if (unit_class >= kUnitClassesMax || tier >= kKvTiers) {
    return corrupt("KV events: a unit of class {} in tier {}", unit_class, tier);
  }
  return KvUnit{.page = {key}, .unit_class = unit_class, .tier = static_cast<KvTier>(tier)};
}

Result<uint32_t> read_count(FrameReader& frame) {
  auto count = frame.take<uint32_t>();
  if (count > kKvFrameEventsMax) {
    return corrupt("KV events: {} in one frame; the limit is {}", count, kKvFrameEventsMax);
  }
  return count;
}

Result<KvMessage> read_events(FrameReader& frame) {
  auto sequence = frame.take<uint64_t>();
  uint32_t count = TRY(read_count(frame));
  KvEvents message;
  for (uint32_t i = 0; i < count && !frame.is_short(); ++i) {
    auto operation = frame.take<uint8_t>();
    if (!frame.is_short() && (operation < 1 || operation > 3)) {
      return corrupt("KV events: unknown operation {}", operation);
    }
    KvUnit unit = TRY(read_unit(frame));
    message.events.push_back({.sequence = sequence + i,
                              .operation = static_cast<KvOperation>(operation),
                              .unit = unit,
                              .parent = {frame.take<std::array<uint8_t, 16>>()}});
  }
  TRY(frame.done("events"));
  if (message.events.empty()) return corrupt("KV events: a frame without events");
  return message;
}

Result<KvMessage> read_snapshot(FrameReader& frame) {
  KvSnapshotPart part{.sequence = frame.take<uint64_t>()};
  auto flags = frame.take<uint8_t>();
  part.first = (flags & kFirstPart) != 0;
  part.last = (flags & kLastPart) != 0;
  uint32_t count = TRY(read_count(frame));
  for (uint32_t i = 0; i < count && !frame.is_short(); ++i) {
    part.units.push_back(TRY(read_unit(frame)));
  }
  TRY(frame.done("snapshot"));
  return part;
}

Result<KvMessage> read_load(FrameReader& frame) {
  LoadReport report;
  for (int64_t* count : {&report.waiting_tokens, &report.waiting, &report.running,
                         &report.pages_free, &report.pages_total}) {
    *count = frame.take<int64_t>();
    if (*count < 0) return corrupt("KV events: an invalid load of {}", *count);
  }
  for (double* value : {&report.prefill_tokens_s, &report.step_ms}) {
    *value = frame.take<double>();
    if (!(*value >= 0 && *value < 1e15)) return corrupt("KV events: an invalid load of {}", *value);
  }
  report.next_event = frame.take<uint64_t>();
  TRY(frame.done("load"));
  return report;
}

}  // namespace

void write_kv_message(const KvMessage& message, std::string& bytes) {
  std::visit([&](const auto& part) { write(part, bytes); }, message);
}

Result<std::optional<KvMessage>> KvStreamReader::next() {
  std::string_view left = std::string_view(bytes_).substr(begin_);
  uint32_t length = 0;
  if (left.size() >= sizeof length) std::memcpy(&length, left.data(), sizeof length);
  if (length > kKvFrameBytesMax) {
    return corrupt("KV events: a frame of {} bytes; the limit is {}", length, kKvFrameBytesMax);
  }
  if (left.size() < kHeaderBytes + length) {
    if (begin_ > kReadBytesMax) bytes_.erase(0, std::exchange(begin_, 0));
    return std::nullopt;
  }
  auto type = static_cast<FrameType>(left[sizeof length]);
  FrameReader frame(left.substr(kHeaderBytes, length));
  begin_ += kHeaderBytes + length;
  if (!greeted_ && type != FrameType::kHello) {
    return corrupt("KV events: the stream does not begin with a hello");
  }
  greeted_ = true;
  switch (type) {
    case FrameType::kHello:
      return TRY(read_hello(frame));
    case FrameType::kEvents:
      return TRY(read_events(frame));
    case FrameType::kSnapshot:
      return TRY(read_snapshot(frame));
    case FrameType::kLoad:
      return TRY(read_load(frame));
  }
  return corrupt("KV events: unknown frame type {}", static_cast<int>(type));
}

}  // namespace banyan
