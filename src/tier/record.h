// A unit as it lies on a disk or a server: a header that says what it is, then the bytes of its
// pools. A record is self-describing: a reader compares its header with what was
// asked for, and both checksums, before a byte is believed.
//
//   0    u64 magic "BNYNREC1", u32 format, u8 class, u8 codec (0: as it is), u16 1 with a key or 0
//   16   digest[16] (the first half of the StateDigest), page[16], parent[16] (of PageKeys)
//   64   i64 end, u32 tokens, u32 bytes of the header, u64 raw bytes, u64 stored bytes,
//        u64 write number
//   104  u32 rank, u32 ranks, payload's checksum[16], zeros to 176
//   176  the header's checksum[16], over all of it with this field zero
//   192  i32 tokens[], zeros to a multiple of 4,096; then the payload, and zeros to the next one
//
// A checksum is XXH3-128, or with a key half of HMAC-SHA256: then nobody plants states who lacks
// it.
//
// Numbers are little endian, as on every machine that Banyan runs on.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/digest.h"
#include "tier/registry.h"
#include "tier/store.h"

namespace banyan {

inline constexpr int64_t kRecordAlignment = 4096;
// More than any header has: 192 bytes and the tokens of the longest page.
inline constexpr int64_t kRecordHeaderBytesMax = 64 << 10;

using RecordChecksum = std::array<uint8_t, 16>;

// What all records of a class in one store have in common.
struct RecordShape {
  std::array<uint8_t, 16> digest = {};
  int unit_class = 0;
  int page_tokens = 1;  // the most a record has
  int64_t payload_bytes = 0;
  int rank = 0, ranks = 1;

  bool operator==(const RecordShape&) const = default;
  int64_t header_bytes() const;
  int64_t bytes() const;  // with the padding at its end
};
RecordShape record_shape(const TierConfig& config, const TierStates& states, int unit_class);

// Checksums of data that arrives in pieces.
class Checksummer {
 public:
  explicit Checksummer(const std::optional<RecordKey>& key = std::nullopt);

  bool keyed() const { return key_.has_value(); }
  void add(std::span<const std::byte> bytes);
  // Starts a new one.
  RecordChecksum finish();
  RecordChecksum of(std::span<const TierPiece> pieces);

 private:
  struct Free {
    void operator()(void* state) const;
  };
  void begin();

  std::optional<RecordKey> key_;
  Hasher hasher_;  // if there is a key
  std::unique_ptr<void, Free> state_;
};

// Fills all of `header`, shape.header_bytes() long.
void encode_header(const RecordShape& shape, const TierRecord& record, uint64_t write_number,
                   const RecordChecksum& payload, std::span<std::byte> header,
                   Checksummer& checksums);
// The same, with the checksum of what lies in `pieces`.
void seal_record(const RecordShape& shape, const TierRecord& record, uint64_t write_number,
                 std::span<const TierPiece> pieces, std::span<std::byte> header,
                 Checksummer& checksums);
// Whether header and pieces belong to this record and are unchanged.
TierOutcome check_record(const RecordShape& shape, const TierRecord& record,
                         std::span<const std::byte> header, std::span<const TierPiece> pieces,
                         Checksummer& checksums);

// The fields of a header.
struct RecordHeader {
  std::array<uint8_t, 16> digest = {};
  TierKey key;
  PageKey parent;
  int64_t end = 0;
  int64_t header_bytes = 0, payload_bytes = 0;
  uint64_t write_number = 0;
  int64_t rank = 0, ranks = 1;
  RecordChecksum payload = {};
  std::span<const std::byte> tokens = {};  // within the decoded bytes

  int64_t bytes() const;  // of the record
};

// Decodes any bytes. kDone; kChecksum: not a header, or a damaged one. kIdentity: a header of
// another format, or one whose use of a key differs from ours.
TierOutcome decode_header(std::span<const std::byte> bytes, RecordHeader& header,
                          Checksummer& checksums);

// The size of the header whose first kRecordAlignment bytes these are; 0: they are no header's.
int64_t header_size(std::span<const std::byte> bytes);

// kDone or kIdentity: whether such a header can belong to a record of this shape, and to this
// record.
TierOutcome compare(const RecordHeader& header, const RecordShape& shape);
TierOutcome compare(const RecordHeader& header, const RecordShape& shape, const TierRecord& record);

}  // namespace banyan
