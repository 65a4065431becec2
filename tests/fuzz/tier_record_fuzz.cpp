// Any bytes as a record of a store: refused, or every promise of decode_header holds, also when its
// checksum is right.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "tier/disk/index_file.h"
#include "tier/record.h"

namespace {

void decode(std::span<const std::byte> bytes) {
  banyan::RecordHeader header;
  banyan::Checksummer checksums;
  if (banyan::decode_header(bytes, header, checksums) != banyan::TierOutcome::kDone) return;
  CHECK(header.header_bytes <= std::ssize(bytes));
  CHECK(header.payload_bytes >= 0 && header.bytes() >= header.header_bytes);
  CHECK(header.rank < header.ranks);
  CHECK(header.key.unit_class < banyan::kUnitClassesMax);
  CHECK(header.tokens.data() >= bytes.data());
  CHECK(header.tokens.data() + header.tokens.size() <= bytes.data() + header.header_bytes);
}

// With the checksum that a header of such bytes would have, so that the fuzzer gets past it.
void decode_signed(std::vector<std::byte> bytes) {
  if (bytes.size() < 192) return;
  uint32_t header_bytes = 0;
  std::memcpy(&header_bytes, &bytes[76], 4);
  if (header_bytes < 192 || header_bytes > bytes.size()) return;
  std::memset(&bytes[176], 0, 16);
  banyan::Checksummer checksum;
  checksum.add(std::span(bytes).first(header_bytes));
  banyan::RecordChecksum sum = checksum.finish();
  std::memcpy(&bytes[176], sum.data(), sum.size());
  decode(bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  decode(bytes);
  decode_signed({bytes.begin(), bytes.end()});
  banyan::IndexHeader header;
  (void)banyan::decode_index_header(bytes, header);
  for (; bytes.size() >= banyan::kIndexEntryBytes;
       bytes = bytes.subspan(banyan::kIndexEntryBytes)) {
    banyan::IndexEntry entry;
    (void)banyan::decode_index_entry(bytes.first<banyan::kIndexEntryBytes>(), entry);
  }
  return 0;
}
