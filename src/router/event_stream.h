// The wire format of `GET /kv/events`: what a worker tells routers of its cache and its load, as
// frames of {length u32, type u8, payload}, little endian.
//
//   hello     version u32, epoch u64, next sequence u64, state digest 32 bytes, page size u32,
//             classes u8, for each {unit u8, reach u8, advisory u8, window tokens i64},
//             alignment of resuming u32
//   events    first sequence u64, count u32, for each {operation, class, tier u8, key 16, parent
//   16} snapshot  sequence u64, flags u8 (1: the first part, 2: the last), count u32, for each
//   {class,
//             tier u8, key 16}
//   load      the fields of LoadReport: five i64, two f64, a u64
//
// A stream begins with hello. Its epoch names a life of the worker's cache; sequence numbers mean
// nothing in another. Then come the events from the number on that was asked for, or, where they
// are not kept any more, a snapshot: all that is there after the event `sequence`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "banyan/status.h"
#include "cache/kv_event.h"
#include "cache/state_classes.h"

namespace banyan {

inline constexpr uint32_t kKvStreamVersion = 1;
inline constexpr size_t kKvFrameBytesMax = size_t{1} << 20;
inline constexpr size_t kKvFrameEventsMax = 4096;

// A reader's position in a worker's events. Epoch 0: it knows nothing.
struct KvPosition {
  uint64_t epoch = 0;
  uint64_t next = 0;
  bool operator==(const KvPosition&) const = default;
};

struct KvHello {
  uint64_t epoch = 0;
  uint64_t next = 0;  // of the next event, unless a snapshot comes first
  Digest states;
  StateClasses classes;  // without what only the worker needs
};

struct KvEvents {
  std::vector<KvEvent> events;  // numbered without gaps; at least one
};

struct KvSnapshotPart {
  uint64_t sequence = 0;
  bool first = false, last = false;
  std::vector<KvUnit> units;
};

using KvMessage = std::variant<KvHello, KvEvents, KvSnapshotPart, LoadReport>;

// Appends a frame. At most kKvFrameEventsMax events or units in one.
void write_kv_message(const KvMessage& message, std::string& bytes);

// Parses a stream that arrives in pieces of any size. After an error the parser cannot be used
// again, and the stream must be reopened.
class KvStreamReader {
 public:
  void add(std::string_view bytes) { bytes_ += bytes; }
  // Nothing if more bytes are needed.
  Result<std::optional<KvMessage>> next();

 private:
  std::string bytes_;
  size_t begin_ = 0;
  bool greeted_ = false;
};

}  // namespace banyan
