#include "tier/record_reader.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/signed.h"

namespace banyan {
namespace {

std::string_view take(std::string_view& bytes, size_t count) {
  std::string_view taken = bytes.substr(0, count);
  bytes.remove_prefix(taken.size());
  return taken;
}

}  // namespace

Status RecordReader::feed(std::string_view bytes) {
  while (!bytes.empty()) {
    if (payload_left_ + padding_left_ == 0) {
      TRY(feed_header(bytes));
    } else {
      feed_payload(bytes);
    }
    bool whole = header_bytes_ > 0 && header_.size() == header_bytes_;
    if (whole && payload_left_ + padding_left_ == 0) end();
  }
  return {};
}

Status RecordReader::feed_header(std::string_view& bytes) {
  size_t wanted = header_bytes_ > 0 ? header_bytes_ : as_size(kRecordAlignment);
  std::string_view piece = take(bytes, wanted - header_.size());
  auto begin = reinterpret_cast<const std::byte*>(piece.data());
  header_.insert(header_.end(), begin, begin + piece.size());
  if (header_.size() < wanted) return {};
  if (header_bytes_ == 0) {
    int64_t size = header_size(header_);
    if (size == 0) return corrupt("a record has no header");
    header_bytes_ = as_size(size);
    if (header_.size() < header_bytes_) return {};
  }
  RecordHeader header;
  if (decode_header(header_, header, checksums_) != TierOutcome::kDone) {
    return corrupt("a record's header is damaged");
  }
  key_ = header.key;
  place_ = sinks_.place(key_);
  bool fits = place_ != nullptr && header.payload_bytes == place_->shape.payload_bytes;
  if (place_ != nullptr && !fits) {
    place_ = nullptr;
    sinks_.end(key_, TierOutcome::kIdentity);
  }
  payload_left_ = header.payload_bytes;
  padding_left_ = header.bytes() - header.header_bytes - header.payload_bytes;
  return {};
}

void RecordReader::feed_payload(std::string_view& bytes) {
  if (payload_left_ == 0) {
    padding_left_ -= std::ssize(take(bytes, as_size(padding_left_)));
    return;
  }
  if (place_ == nullptr) {
    payload_left_ -= std::ssize(take(bytes, as_size(payload_left_)));
    return;
  }
  const TierPiece& to = place_->pieces[piece_];
  std::string_view part = take(bytes, to.bytes - piece_bytes_);
  std::memcpy(to.data + piece_bytes_, part.data(), part.size());
  payload_left_ -= std::ssize(part);
  piece_bytes_ += part.size();
  if (piece_bytes_ < to.bytes) return;
  ++piece_;
  piece_bytes_ = 0;
}

void RecordReader::end() {
  if (place_ != nullptr) {
    sinks_.end(key_,
               check_record(place_->shape, place_->record, header_, place_->pieces, checksums_));
  }
  header_.clear();
  header_bytes_ = piece_ = piece_bytes_ = 0;
  place_ = nullptr;
}

}  // namespace banyan
