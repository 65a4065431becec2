// Records that arrive in pieces of any size.
#include "tier/record_reader.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>

#include "support/tier/tier_rig.h"

namespace banyan::record_reader_test {
namespace {

using test::TierUnit;

// Units that are wanted, and what became of them.
class Wanted {
 public:
  explicit Wanted(const std::vector<std::pair<int64_t, int>>& units) {
    for (auto [number, unit_class] : units) {
      auto unit = std::make_unique<TierUnit>(states_, number, unit_class);
      unit->wipe();
      TierJob job = unit->job(0);
      places_[unit->key()] = {.shape = record_shape({}, states_, unit_class),
                              .record = job.record,
                              .pieces = job.pieces};
      units_[unit->key()] = std::move(unit);
    }
  }
  RecordReader reader() {
    return RecordReader(
        {.place =
             [this](const TierKey& key) {
               auto found = places_.find(key);
               return found == places_.end() ? nullptr : &found->second;
             },
         .end = [this](const TierKey& key, TierOutcome outcome) { outcomes[key] = outcome; }});
  }
  std::string record(int64_t number, int unit_class) const {
    TierUnit unit(states_, number, unit_class);
    unit.fill();
    TierJob job = unit.job(0);
    RecordShape shape = record_shape({}, states_, unit_class);
    std::string bytes(static_cast<size_t>(shape.bytes()), '\0');
    auto to = std::as_writable_bytes(std::span(bytes));
    Checksummer checksums;
    auto header = static_cast<size_t>(shape.header_bytes());
    seal_record(shape, job.record, 1, job.pieces, to.first(header), checksums);
    for (size_t at = header; const TierPiece& piece : job.pieces) {
      std::ranges::copy(std::span(piece.data, piece.bytes), to.begin() + static_cast<long>(at));
      at += piece.bytes;
    }
    return bytes;
  }
  bool right(int64_t number, int unit_class) const {
    TierKey key = TierUnit(states_, number, unit_class).key();
    auto outcome = outcomes.find(key);
    return outcome != outcomes.end() && outcome->second == TierOutcome::kDone &&
           units_.at(key)->right();
  }
  TierOutcome outcome(int64_t number, int unit_class) const {
    return outcomes.at(TierUnit(states_, number, unit_class).key());
  }

  std::map<TierKey, TierOutcome> outcomes;

 private:
  TierStates states_ = test::tier_states();
  std::map<TierKey, std::unique_ptr<TierUnit>> units_;
  std::map<TierKey, RecordReader::Place> places_;
};

TEST(RecordReader, TakesPiecesOfAnySize) {
  for (size_t piece : {size_t{1}, size_t{7}, size_t{4096}, size_t{5000}, size_t{1} << 20}) {
    Wanted wanted({{1, 0}, {1, 1}, {2, 0}});
    std::string stream = wanted.record(1, 0) + wanted.record(1, 1) + wanted.record(2, 0);
    RecordReader reader = wanted.reader();
    for (size_t at = 0; at < stream.size(); at += piece) {
      ASSERT_TRUE(reader.feed(std::string_view(stream).substr(at, piece)));
    }
    EXPECT_TRUE(reader.between_records());
    EXPECT_TRUE(wanted.right(1, 0) && wanted.right(1, 1) && wanted.right(2, 0)) << piece;
  }
}

TEST(RecordReader, DropsWhatNobodyWants) {
  Wanted wanted({{2, 0}});
  std::string stream = wanted.record(1, 0) + wanted.record(2, 0);
  RecordReader reader = wanted.reader();
  EXPECT_TRUE(reader.feed(stream));
  EXPECT_EQ(wanted.outcomes.size(), 1u);
  EXPECT_TRUE(wanted.right(2, 0));
}

TEST(RecordReader, NoticesDamageAndContinues) {
  Wanted wanted({{1, 0}, {2, 0}});
  std::string damaged = wanted.record(1, 0);
  damaged[4096 + 17] = static_cast<char>(damaged[4096 + 17] ^ 1);
  RecordReader reader = wanted.reader();
  EXPECT_TRUE(reader.feed(damaged + wanted.record(2, 0)));
  EXPECT_EQ(wanted.outcome(1, 0), TierOutcome::kChecksum);
  EXPECT_TRUE(wanted.right(2, 0));
}

TEST(RecordReader, RefusesWhatIsNoRecord) {
  Wanted wanted({{1, 0}});
  EXPECT_FALSE(wanted.reader().feed(std::string(8192, 'x')));
  std::string damaged = wanted.record(1, 0);
  damaged[100] = static_cast<char>(damaged[100] ^ 1);  // in its header
  EXPECT_FALSE(wanted.reader().feed(damaged));
  RecordReader reader = wanted.reader();
  EXPECT_TRUE(reader.feed(wanted.record(1, 0).substr(0, 5000)));
  EXPECT_FALSE(reader.between_records());
  EXPECT_TRUE(wanted.outcomes.empty());
}

}  // namespace
}  // namespace banyan::record_reader_test
