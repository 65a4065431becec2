#include "tier/disk/index_file.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"

namespace banyan {
namespace {

constexpr std::array<char, 8> kIndexMagic = {'B', 'N', 'Y', 'N', 'I', 'D', 'X', '1'};

struct RawIndexHeader {
  std::array<char, 8> magic = kIndexMagic;
  std::array<uint8_t, 16> digest = {};
  int64_t unit_class = 0, page_tokens = 0, payload_bytes = 0, rank = 0, ranks = 0;
  int64_t slots_per_slab = 0;
  uint64_t checksum = 0;  // of all before
};
static_assert(sizeof(RawIndexHeader) == 80 && offsetof(RawIndexHeader, checksum) == 72);

// More than a slab has, so that offsets within one cannot overflow.
constexpr int64_t kSlabBytesMax = int64_t{1} << 42;

constexpr uint32_t kLive = 1, kWritten = 2;  // an entry of zeros was never written

struct RawIndexEntry {
  std::array<uint8_t, 16> key = {}, parent = {};
  int64_t end = 0;
  uint32_t slot = 0, used_s = 0;
  uint64_t write_number = 0;
  uint32_t flags = 0;
  uint32_t checksum = 0;  // of all before
};
static_assert(sizeof(RawIndexEntry) == kIndexEntryBytes && offsetof(RawIndexEntry, checksum) == 60);

template <class Raw>
uint64_t checksum_of(const Raw& raw) {
  return XXH3_64bits(&raw, offsetof(Raw, checksum));
}

}  // namespace

void encode_index_header(const IndexHeader& header, std::span<std::byte> bytes) {
  CHECK(std::ssize(bytes) == kIndexHeaderBytes);
  RawIndexHeader raw{.digest = header.shape.digest,
                     .unit_class = header.shape.unit_class,
                     .page_tokens = header.shape.page_tokens,
                     .payload_bytes = header.shape.payload_bytes,
                     .rank = header.shape.rank,
                     .ranks = header.shape.ranks,
                     .slots_per_slab = header.slots_per_slab};
  raw.checksum = checksum_of(raw);
  std::ranges::fill(bytes, std::byte{0});
  std::memcpy(bytes.data(), &raw, sizeof raw);
}

bool decode_index_header(std::span<const std::byte> bytes, IndexHeader& header) {
  RawIndexHeader raw;
  if (bytes.size() < sizeof raw) return false;
  std::memcpy(&raw, bytes.data(), sizeof raw);
  if (raw.magic != kIndexMagic || raw.checksum != checksum_of(raw)) return false;
  auto within = [](int64_t value, int64_t least, int64_t most) {
    return value >= least && value <= most;
  };
  if (!within(raw.unit_class, 0, kUnitClassesMax - 1) || !within(raw.page_tokens, 1, 1 << 20) ||
      !within(raw.payload_bytes, 1, int64_t{1} << 40) || !within(raw.ranks, 1, 1 << 20) ||
      !within(raw.rank, 0, raw.ranks - 1) ||
      !within(raw.slots_per_slab, 1,
              std::min(int64_t{1} << 30, kSlabBytesMax / raw.payload_bytes))) {
    return false;
  }
  header = {.shape = {.digest = raw.digest,
                      .unit_class = static_cast<int>(raw.unit_class),
                      .page_tokens = static_cast<int>(raw.page_tokens),
                      .payload_bytes = raw.payload_bytes,
                      .rank = static_cast<int>(raw.rank),
                      .ranks = static_cast<int>(raw.ranks)},
            .slots_per_slab = raw.slots_per_slab};
  return true;
}

void encode_index_entry(const IndexEntry& entry, std::span<std::byte, kIndexEntryBytes> bytes) {
  RawIndexEntry raw{.key = entry.key.bytes,
                    .parent = entry.parent.bytes,
                    .end = entry.end,
                    .slot = entry.slot,
                    .used_s = entry.used_s,
                    .write_number = entry.write_number,
                    .flags = entry.live ? kLive | kWritten : kWritten};
  raw.checksum = static_cast<uint32_t>(checksum_of(raw));
  std::memcpy(bytes.data(), &raw, sizeof raw);
}

bool decode_index_entry(std::span<const std::byte, kIndexEntryBytes> bytes, IndexEntry& entry) {
  RawIndexEntry raw;
  std::memcpy(&raw, bytes.data(), sizeof raw);
  if ((raw.flags & kWritten) == 0 || raw.checksum != static_cast<uint32_t>(checksum_of(raw))) {
    return false;
  }
  entry = {.key = {raw.key},
           .parent = {raw.parent},
           .end = raw.end,
           .slot = raw.slot,
           .used_s = raw.used_s,
           .write_number = raw.write_number,
           .live = (raw.flags & kLive) != 0};
  return true;
}

}  // namespace banyan
