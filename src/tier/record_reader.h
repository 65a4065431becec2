// Records that arrive one after the other in pieces, as over a network. Bytes go from a piece
// straight into the unit. One thread.
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "banyan/status.h"
#include "tier/record.h"

namespace banyan {

class RecordReader {
 public:
  // Where a record is wanted. What it refers to must not change until its outcome was reported.
  struct Place {
    RecordShape shape;
    TierRecord record;
    std::span<const TierPiece> pieces;
  };
  // Called from feed(). `place` is null if nobody wants the record; its bytes are then dropped.
  struct Sinks {
    std::function<const Place*(const TierKey& key)> place;
    std::function<void(const TierKey& key, TierOutcome outcome)> end;
  };

  explicit RecordReader(Sinks sinks) : sinks_(std::move(sinks)) {}

  // kCorrupt: these are no records. Nothing may be fed after that.
  Status feed(std::string_view bytes);
  // Whether the last byte that was fed is the last one of a record.
  bool between_records() const { return header_.empty(); }

 private:
  Status feed_header(std::string_view& bytes);
  void feed_payload(std::string_view& bytes);
  void end();

  Sinks sinks_;
  Checksummer checksums_;
  std::vector<std::byte> header_;  // as much of it as has arrived
  size_t header_bytes_ = 0;        // that it has
  TierKey key_;
  const Place* place_ = nullptr;
  size_t piece_ = 0, piece_bytes_ = 0;  // the next byte's piece, and place in it
  int64_t payload_left_ = 0, padding_left_ = 0;
};

}  // namespace banyan
