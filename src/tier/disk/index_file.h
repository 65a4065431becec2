// The on-disk index of a class's slots: a header, then 64 bytes for each slot. All of it is a hint:
// a damaged, stale or missing entry costs a record or the reading of headers, but never a wrong
// byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tier/record.h"

namespace banyan {

inline constexpr size_t kIndexEntryBytes = 64;
inline constexpr int64_t kIndexHeaderBytes = 4096;

struct IndexHeader {
  RecordShape shape;
  int64_t slots_per_slab = 0;
};

// Fills all of `bytes`, kIndexHeaderBytes long.
void encode_index_header(const IndexHeader& header, std::span<std::byte> bytes);
// False for anything but an intact header of this format.
bool decode_index_header(std::span<const std::byte> bytes, IndexHeader& header);

struct IndexEntry {
  PageKey key, parent;
  int64_t end = 0;
  uint32_t slot = 0;
  uint32_t used_s = 0;  // last use, in seconds since 1970
  uint64_t write_number = 0;
  bool live = false;  // the slot has a record
};

void encode_index_entry(const IndexEntry& entry, std::span<std::byte, kIndexEntryBytes> bytes);
// False if the entry was never written or is damaged.
bool decode_index_entry(std::span<const std::byte, kIndexEntryBytes> bytes, IndexEntry& entry);

}  // namespace banyan
