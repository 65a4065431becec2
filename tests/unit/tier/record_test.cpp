// The record format: every bit is checked, and only its own key is accepted.
#include "tier/record.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "support/tier/tier_rig.h"
#include "tier/disk/index_file.h"

namespace banyan::record_test {
namespace {

struct Encoded {
  TierStates states = test::tier_states();
  RecordShape shape = record_shape({}, states, 0);
  test::TierUnit unit{states, 7, 0};
  std::vector<std::byte> bytes = std::vector<std::byte>(static_cast<size_t>(shape.header_bytes()));

  Checksummer checksums;

  Encoded() { encode_header(shape, unit.record(), 3, {1, 2, 3}, bytes, checksums); }
  TierOutcome decode(std::span<const std::byte> from, RecordHeader& header) {
    return decode_header(from, header, checksums);
  }
};

TEST(TierRecord, SaysWhatItIs) {
  Encoded e;
  RecordHeader header;
  ASSERT_EQ(e.decode(e.bytes, header), TierOutcome::kDone);
  EXPECT_EQ(header.key, e.unit.key());
  EXPECT_EQ(header.parent, e.unit.record().parent);
  EXPECT_EQ(header.end, 28);
  EXPECT_EQ(header.write_number, 3u);
  EXPECT_EQ(header.payload, (RecordChecksum{1, 2, 3}));
  EXPECT_EQ(header.bytes(), e.shape.bytes());
  EXPECT_EQ(e.shape.bytes(), 4096 + 3 * 4096);
  EXPECT_EQ(compare(header, e.shape, e.unit.record()), TierOutcome::kDone);
}

// Not one bit of it can change unseen.
TEST(TierRecord, EveryBitIsChecked) {
  Encoded e;
  for (size_t bit = 0; bit < e.bytes.size() * 8; bit += bit < 256 * 8 ? 1 : 67) {
    std::vector<std::byte> bytes = e.bytes;
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
    RecordHeader header;
    EXPECT_NE(e.decode(bytes, header), TierOutcome::kDone) << "bit " << bit;
  }
  for (size_t size : {size_t{0}, size_t{191}, size_t{192}, e.bytes.size() - 1}) {
    RecordHeader header;
    EXPECT_EQ(e.decode(std::span(e.bytes).first(size), header), TierOutcome::kChecksum);
  }
}

TEST(TierRecord, AnotherFormatIsNotDamage) {
  Encoded e;
  RecordHeader header;
  e.bytes[8] = std::byte{2};
  EXPECT_EQ(e.decode(e.bytes, header), TierOutcome::kIdentity);
}

TEST(TierRecord, EveryIdentifyingFieldIsCompared) {
  Encoded e;
  RecordHeader header;
  ASSERT_EQ(e.decode(e.bytes, header), TierOutcome::kDone);
  std::vector<PrefixToken> tokens(4, 8);
  auto changed = [&](auto change) {
    TierRecord record = e.unit.record();
    RecordShape shape = e.shape;
    change(record, shape);
    return compare(header, shape, record);
  };
  EXPECT_EQ(changed([](auto&, auto&) {}), TierOutcome::kDone);
  EXPECT_EQ(changed([](auto& r, auto&) { r.key.page.bytes[15] ^= 1; }), TierOutcome::kIdentity);
  EXPECT_EQ(changed([](auto& r, auto&) { r.parent.bytes[0] ^= 1; }), TierOutcome::kIdentity);
  EXPECT_EQ(changed([](auto& r, auto&) { r.end += 4; }), TierOutcome::kIdentity);
  EXPECT_EQ(changed([&](auto& r, auto&) { r.tokens = tokens; }), TierOutcome::kIdentity);
  EXPECT_EQ(changed([](auto& r, auto&) { r.tokens = r.tokens.first(3); }), TierOutcome::kIdentity);
  EXPECT_EQ(changed([](auto&, auto& s) { s.digest[0] ^= 1; }), TierOutcome::kIdentity);
  EXPECT_EQ(changed([](auto& r, auto& s) { r.key.unit_class = s.unit_class = 1; }),
            TierOutcome::kIdentity);
  EXPECT_EQ(changed([](auto&, auto& s) { s.payload_bytes -= 1; }), TierOutcome::kIdentity);
  EXPECT_EQ(changed([](auto&, auto& s) { s.ranks = 2; }), TierOutcome::kIdentity);
  EXPECT_EQ(changed([](auto&, auto& s) { s.rank = 1; }), TierOutcome::kIdentity);
}

TEST(TierRecord, ThePayloadIsTheSameInAnyPieces) {
  std::vector<std::byte> bytes(10000);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7);
  for (auto key : {std::optional<RecordKey>(), std::optional(RecordKey{{1, 2, 3}})}) {
    Checksummer checksums(key);
    auto whole = [&] {
      checksums.add(bytes);
      return checksums.finish();
    };
    RecordChecksum before = whole();
    for (size_t at = 0; at < bytes.size(); at += 1000) {
      checksums.add(std::span(bytes).subspan(at, 1000));
    }
    EXPECT_EQ(checksums.finish(), before);
    bytes[5000] ^= std::byte{1};
    EXPECT_NE(whole(), before);
    bytes[5000] ^= std::byte{1};
  }
}

// RFC 4231, test cases 2 and 1: keys shorter than a block are as if zeros followed them.
TEST(TierRecord, AKeyMakesHmac) {
  auto hmac = [](std::string_view key, std::string_view text) {
    RecordKey padded;
    std::ranges::copy(key, padded.bytes.begin());
    Checksummer checksums(padded);
    checksums.add(std::as_bytes(std::span(text)));
    std::string hex;
    for (uint8_t byte : checksums.finish()) hex += fmt::format("{:02x}", byte);
    return hex;
  };
  EXPECT_EQ(hmac("Jefe", "what do ya want for nothing?"), "5bdcc146bf60754e6a042426089575c7");
  EXPECT_EQ(hmac(std::string(20, '\x0b'), "Hi There"), "b0344c61d8db38535ca8afceaf0bf12b");
}

TEST(TierRecord, IsNotBelievedWithoutItsKey) {
  Encoded plain;
  TierRecord& record = plain.unit.record();
  plain.unit.fill();
  auto pieces = plain.unit.job(0).pieces;
  Checksummer none, own(RecordKey{{1}}), other(RecordKey{{2}});
  auto check = [&](Checksummer& checksums) {
    return check_record(plain.shape, record, plain.bytes, pieces, checksums);
  };
  seal_record(plain.shape, record, 1, pieces, plain.bytes, own);
  EXPECT_EQ(check(own), TierOutcome::kDone);
  EXPECT_EQ(check(other), TierOutcome::kChecksum);
  EXPECT_EQ(check(none), TierOutcome::kIdentity);
  plain.unit.wipe();
  EXPECT_EQ(check(own), TierOutcome::kChecksum);
  seal_record(plain.shape, record, 1, pieces, plain.bytes, none);
  EXPECT_EQ(check(none), TierOutcome::kDone);
  EXPECT_EQ(check(own), TierOutcome::kIdentity) << "planted";
}

TEST(TierIndex, AnEntryThatIsDamagedIsNone) {
  test::TierUnit unit(test::tier_states(), 7, 0);
  std::array<std::byte, kIndexEntryBytes> bytes = {};
  IndexEntry entry;
  EXPECT_FALSE(decode_index_entry(bytes, entry));  // nobody wrote one
  encode_index_entry({.key = unit.key().page,
                      .parent = unit.record().parent,
                      .end = 28,
                      .slot = 5,
                      .used_s = 6,
                      .write_number = 7,
                      .live = true},
                     bytes);
  ASSERT_TRUE(decode_index_entry(bytes, entry));
  EXPECT_EQ(entry.key, unit.key().page);
  EXPECT_EQ(entry.slot, 5u);
  EXPECT_TRUE(entry.live);
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    auto flipped = bytes;
    flipped[bit / 8] ^= std::byte{1} << (bit % 8);
    EXPECT_FALSE(decode_index_entry(flipped, entry)) << bit;
  }
}

TEST(TierIndex, ItsHeaderSaysWhatItIsOf) {
  RecordShape shape = record_shape({.rank = 1, .ranks = 3}, test::tier_states(), 1);
  std::vector<std::byte> bytes(kIndexHeaderBytes);
  encode_index_header({.shape = shape, .slots_per_slab = 12}, bytes);
  IndexHeader header;
  ASSERT_TRUE(decode_index_header(bytes, header));
  EXPECT_EQ(header.shape, shape);
  EXPECT_EQ(header.slots_per_slab, 12);
  for (size_t bit = 0; bit < 80 * 8; ++bit) {
    std::vector<std::byte> flipped = bytes;
    flipped[bit / 8] ^= std::byte{1} << (bit % 8);
    EXPECT_FALSE(decode_index_header(flipped, header)) << bit;
  }
}

}  // namespace
}  // namespace banyan::record_test
