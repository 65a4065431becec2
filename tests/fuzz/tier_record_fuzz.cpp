// Any bytes as a record of a store: refused, or every promise of decode_header holds, also when its
// checksum is right.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "tier/disk/index_file.h"
#include "tier/record.h"
#include "tier/record_reader.h"

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

// As if they came over a network, in two pieces; every other record is wanted.
void read_stream(std::span<const std::byte> bytes) {
  std::array<std::byte, 64> unit = {};
  std::array<banyan::TierPiece, 2> pieces = {{{unit.data(), 40}, {unit.data() + 40, 24}}};
  banyan::RecordReader::Place place{
      .shape = {.page_tokens = 4, .payload_bytes = unit.size()}, .record = {}, .pieces = pieces};
  int records = 0;
  banyan::RecordReader reader(
      {.place = [&](const banyan::TierKey&) { return records++ % 2 == 0 ? &place : nullptr; },
       .end = [](const banyan::TierKey&, banyan::TierOutcome) {}});
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  size_t half = bytes.empty() ? 0 : std::to_integer<size_t>(bytes[0]) % bytes.size();
  if (reader.feed(text.substr(0, half))) (void)reader.feed(text.substr(half));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  decode(bytes);
  decode_signed({bytes.begin(), bytes.end()});
  read_stream(bytes);
  banyan::IndexHeader header;
  (void)banyan::decode_index_header(bytes, header);
  for (; bytes.size() >= banyan::kIndexEntryBytes;
       bytes = bytes.subspan(banyan::kIndexEntryBytes)) {
    banyan::IndexEntry entry;
    (void)banyan::decode_index_entry(bytes.first<banyan::kIndexEntryBytes>(), entry);
  }
  return 0;
}
