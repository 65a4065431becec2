#include "tier/record.h"

#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.h"
#include "base/signed.h"

namespace banyan {
namespace {

static_assert(std::endian::native == std::endian::little);
static_assert(sizeof(PrefixToken) == 4);

constexpr std::array<char, 8> kMagic = {'B', 'N', 'Y', 'N', 'R', 'E', 'C', '1'};
constexpr uint32_t kRecordFormat = 1;

struct RawHeader {
  std::array<char, 8> magic = kMagic;
  uint32_t format = kRecordFormat;
  uint8_t unit_class = 0, codec = 0;
  uint16_t keyed = 0;
  std::array<uint8_t, 16> digest = {}, page = {}, parent = {};
  int64_t end = 0;
  uint32_t tokens = 0, header_bytes = 0;
  uint64_t raw_bytes = 0, stored_bytes = 0, write_number = 0;
  uint32_t rank = 0, ranks = 0;
  RecordChecksum payload = {};
  std::array<uint8_t, 48> reserved = {};
  RecordChecksum header = {};
};
static_assert(sizeof(RawHeader) == 192 && offsetof(RawHeader, header) == 176);

constexpr int64_t kRecordBytesMax = int64_t{1} << 40;

constexpr int64_t round_up(int64_t bytes) {
  return (bytes + kRecordAlignment - 1) / kRecordAlignment * kRecordAlignment;
}

RecordChecksum to_checksum(const XXH128_hash_t& hash) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, hash);
  RecordChecksum checksum;
  std::ranges::copy(canonical.digest, checksum.begin());
  return checksum;
}

// The checksum of a header, ignoring the checksum field.
RecordChecksum header_checksum(RawHeader raw, std::span<const std::byte> header,
                               Checksummer& checksums) {
  raw.header = {};
  checksums.add(std::as_bytes(std::span(&raw, 1)));
  checksums.add(header.subspan(sizeof raw));
  return checksums.finish();
}

// The first or the second step of HMAC: the key in a block of SHA-256, each byte XORed with `mask`.
std::array<std::byte, 64> key_block(const RecordKey& key, uint8_t mask) {
  std::array<std::byte, 64> block;
  block.fill(std::byte{mask});
  for (size_t i = 0; i < key.bytes.size(); ++i) block[i] ^= std::byte{key.bytes[i]};
  return block;
}

XXH3_state_t* as_xxh3(void* state) {
  return static_cast<XXH3_state_t*>(state);
}

// Whether sizes contradict each other, whatever the checksum says.
bool sizes_make_sense(const RawHeader& raw) {
  return raw.header_bytes % kRecordAlignment == 0 && raw.header_bytes <= kRecordHeaderBytesMax &&
         raw.header_bytes >= sizeof raw + uint64_t{4} * raw.tokens &&
         raw.stored_bytes <= uint64_t{kRecordBytesMax} && raw.stored_bytes == raw.raw_bytes &&
         raw.unit_class < kUnitClassesMax && raw.rank < raw.ranks;
}

}  // namespace

int64_t RecordShape::header_bytes() const {
  return round_up(sizeof(RawHeader) + int64_t{4} * page_tokens);
}

int64_t RecordShape::bytes() const {
  return header_bytes() + round_up(payload_bytes);
}

int64_t RecordHeader::bytes() const {
  return header_bytes + round_up(payload_bytes);
}

RecordShape record_shape(const TierConfig& config, const TierStates& states, int unit_class) {
  RecordShape shape{.unit_class = unit_class,
                    .page_tokens = states.classes.page_size_tokens,
                    .payload_bytes = at(states.unit_bytes, unit_class),
                    .rank = config.rank,
                    .ranks = config.ranks};
  std::copy_n(states.digest.value().bytes.begin(), shape.digest.size(), shape.digest.begin());
  return shape;
}

void Checksummer::Free::operator()(void* state) const {
  XXH3_freeState(as_xxh3(state));
}

Checksummer::Checksummer(const std::optional<RecordKey>& key)
    : key_(key), state_(XXH3_createState()) {
  CHECK(state_ != nullptr, "no memory for a checksum");
  begin();
}

void Checksummer::begin() {
  if (key_) {
    hasher_.bytes(key_block(*key_, 0x36));
  } else {
    XXH3_128bits_reset(as_xxh3(state_.get()));
  }
}

void Checksummer::add(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  if (key_) {
    hasher_.bytes(bytes);
  } else {
    XXH3_128bits_update(as_xxh3(state_.get()), bytes.data(), bytes.size());
  }
}

RecordChecksum Checksummer::finish() {
  RecordChecksum checksum;
  if (key_) {
    Digest inner = hasher_.finish();
    hasher_.bytes(key_block(*key_, 0x5c)).bytes(std::as_bytes(std::span(inner.bytes)));
    std::copy_n(hasher_.finish().bytes.begin(), checksum.size(), checksum.begin());
  } else {
    checksum = to_checksum(XXH3_128bits_digest(as_xxh3(state_.get())));
  }
  begin();
  return checksum;
}

RecordChecksum Checksummer::of(std::span<const TierPiece> pieces) {
  for (const TierPiece& piece : pieces) add({piece.data, piece.bytes});
  return finish();
}

void seal_record(const RecordShape& shape, const TierRecord& record, uint64_t write_number,
                 std::span<const TierPiece> pieces, std::span<std::byte> header,
                 Checksummer& checksums) {
  encode_header(shape, record, write_number, checksums.of(pieces), header, checksums);
}

TierOutcome check_record(const RecordShape& shape, const TierRecord& record,
                         std::span<const std::byte> header, std::span<const TierPiece> pieces,
                         Checksummer& checksums) {
  RecordHeader found;
  TierOutcome outcome = decode_header(header, found, checksums);
  if (outcome == TierOutcome::kDone) outcome = compare(found, shape, record);
  if (outcome != TierOutcome::kDone) return outcome;
  return checksums.of(pieces) == found.payload ? TierOutcome::kDone : TierOutcome::kChecksum;
}

void encode_header(const RecordShape& shape, const TierRecord& record, uint64_t write_number,
                   const RecordChecksum& payload, std::span<std::byte> header,
                   Checksummer& checksums) {
  CHECK(std::ssize(header) == shape.header_bytes());
  CHECK(std::ssize(record.tokens) <= shape.page_tokens, "{} tokens in a page of {}",
        record.tokens.size(), shape.page_tokens);
  CHECK(record.key.unit_class == shape.unit_class);
  RawHeader raw{.unit_class = narrow<uint8_t>(shape.unit_class),
                .keyed = static_cast<uint16_t>(checksums.keyed() ? 1 : 0),
                .digest = shape.digest,
                .page = record.key.page.bytes,
                .parent = record.parent.bytes,
                .end = record.end,
                .tokens = narrow<uint32_t>(record.tokens.size()),
                .header_bytes = narrow<uint32_t>(header.size()),
                .raw_bytes = static_cast<uint64_t>(shape.payload_bytes),
                .stored_bytes = static_cast<uint64_t>(shape.payload_bytes),
                .write_number = write_number,
                .rank = narrow<uint32_t>(shape.rank),
                .ranks = narrow<uint32_t>(shape.ranks),
                .payload = payload};
  std::ranges::fill(header, std::byte{0});
  std::ranges::copy(std::as_bytes(record.tokens), header.begin() + sizeof raw);
  raw.header = header_checksum(raw, header, checksums);
  std::ranges::copy(std::as_bytes(std::span(&raw, 1)), header.begin());
}

TierOutcome decode_header(std::span<const std::byte> bytes, RecordHeader& header,
                          Checksummer& checksums) {
  RawHeader raw;
  if (bytes.size() < sizeof raw) return TierOutcome::kChecksum;
  std::memcpy(&raw, bytes.data(), sizeof raw);
  if (raw.magic != kMagic) return TierOutcome::kChecksum;
  bool known = raw.format == kRecordFormat && raw.codec == 0;
  if (!known || raw.keyed != (checksums.keyed() ? 1 : 0)) return TierOutcome::kIdentity;
  if (!sizes_make_sense(raw) || raw.header_bytes > bytes.size()) return TierOutcome::kChecksum;
  if (header_checksum(raw, bytes.first(raw.header_bytes), checksums) != raw.header) {
    return TierOutcome::kChecksum;
  }
  header = {.digest = raw.digest,
            .key = {.page = {raw.page}, .unit_class = raw.unit_class},
            .parent = {raw.parent},
            .end = raw.end,
            .header_bytes = raw.header_bytes,
            .payload_bytes = static_cast<int64_t>(raw.stored_bytes),
            .write_number = raw.write_number,
            .rank = raw.rank,
            .ranks = raw.ranks,
            .payload = raw.payload,
            .tokens = bytes.subspan(sizeof raw, size_t{4} * raw.tokens)};
  return TierOutcome::kDone;
}

int64_t header_size(std::span<const std::byte> bytes) {
  RawHeader raw;
  CHECK(bytes.size() >= sizeof raw);
  std::memcpy(&raw, bytes.data(), sizeof raw);
  return raw.magic == kMagic && sizes_make_sense(raw) ? raw.header_bytes : 0;
}

TierOutcome compare(const RecordHeader& header, const RecordShape& shape) {
  bool same = header.digest == shape.digest && header.key.unit_class == shape.unit_class &&
              header.header_bytes == shape.header_bytes() &&
              header.payload_bytes == shape.payload_bytes && header.rank == shape.rank &&
              header.ranks == shape.ranks;
  return same ? TierOutcome::kDone : TierOutcome::kIdentity;
}

TierOutcome compare(const RecordHeader& header, const RecordShape& shape,
                    const TierRecord& record) {
  if (compare(header, shape) != TierOutcome::kDone) return TierOutcome::kIdentity;
  bool same = header.key == record.key && header.parent == record.parent &&
              header.end == record.end &&
              std::ranges::equal(header.tokens, std::as_bytes(record.tokens));
  return same ? TierOutcome::kDone : TierOutcome::kIdentity;
}

}  // namespace banyan
