#include "tier/record_io.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/check.h"
#include "base/signed.h"

namespace banyan {
namespace {

constexpr size_t kBufferBytes = 4 << 20;

bool is_aligned(const iovec& part) {
  return reinterpret_cast<uintptr_t>(part.iov_base) % kDirectAlignment == 0 &&
         part.iov_len % kDirectAlignment == 0;
}

// Copies between `bytes` and the parts from their byte `at` on.
void copy_parts(std::span<const iovec> parts, size_t at, std::span<std::byte> bytes, bool out) {
  for (const iovec& part : parts) {
    if (at >= part.iov_len) {
      at -= part.iov_len;
      continue;
    }
    size_t count = std::min(part.iov_len - at, bytes.size());
    std::byte* own = static_cast<std::byte*>(part.iov_base) + at;
    if (out) {
      std::memcpy(own, bytes.data(), count);
    } else {
      std::memcpy(bytes.data(), own, count);
    }
    bytes = bytes.subspan(count);
    at = 0;
    if (bytes.empty()) return;
  }
}

size_t total(std::span<const iovec> parts) {
  size_t bytes = 0;
  for (const iovec& part : parts) bytes += part.iov_len;
  return bytes;
}

int64_t total(std::span<const TierPiece> pieces) {
  int64_t bytes = 0;
  for (const TierPiece& piece : pieces) bytes += piece.bytes;
  return bytes;
}

RecordEnd failed(int64_t result) {
  // A file that ends before its record does not have the record.
  if (result == 0) return {.outcome = TierOutcome::kChecksum};
  return {.outcome = TierOutcome::kFailed, .error = narrow<int>(-result)};
}

}  // namespace

RecordIo::RecordIo(const std::optional<RecordKey>& key)
    : header_(aligned(kRecordHeaderBytesMax)),
      padding_(aligned(kRecordAlignment)),
      buffer_(aligned(kBufferBytes)),
      checksums_(key) {}

RecordIo::Buffer RecordIo::aligned(size_t bytes) {
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(kRecordAlignment, bytes));
  CHECK(memory != nullptr, "no memory for {} bytes", bytes);
  std::memset(memory, 0, bytes);
  return Buffer(memory);
}

std::span<std::byte> RecordIo::header(const RecordShape& shape) {
  CHECK(shape.header_bytes() <= kRecordHeaderBytesMax, "pages of {} tokens", shape.page_tokens);
  return {header_.get(), as_size(shape.header_bytes())};
}

RecordEnd RecordIo::write(StorageFile& file, int64_t offset, const RecordShape& shape,
                          const TierRecord& record, std::span<const TierPiece> pieces,
                          uint64_t write_number) {
  seal_record(shape, record, write_number, pieces, header(shape), checksums_);
  std::memset(padding_.get(), 0, kRecordAlignment);
  return move(Way::kWrite, file, offset, shape, pieces);
}

RecordEnd RecordIo::read(StorageFile& file, int64_t offset, const RecordShape& shape,
                         const TierRecord& record, std::span<const TierPiece> pieces) {
  RecordEnd end = move(Way::kRead, file, offset, shape, pieces);
  if (end.outcome == TierOutcome::kDone) {
    end.outcome = check_record(shape, record, header(shape), pieces, checksums_);
  }
  return end;
}

RecordEnd RecordIo::read_header(StorageFile& file, int64_t offset, int64_t header_bytes,
                                RecordHeader& header) {
  CHECK(header_bytes <= kRecordHeaderBytesMax);
  iovec part{.iov_base = header_.get(), .iov_len = as_size(header_bytes)};
  RecordEnd end = move_all(Way::kRead, file, offset, {&part, 1});
  if (end.outcome == TierOutcome::kDone) {
    std::span<const std::byte> bytes(header_.get(), as_size(header_bytes));
    end.outcome = decode_header(bytes, header, checksums_);
  }
  return end;
}

RecordEnd RecordIo::verify(StorageFile& file, int64_t offset, RecordHeader& header) {
  RecordEnd end = read_header(file, offset, kRecordAlignment, header);
  uint32_t header_bytes = 0;
  if (end.outcome == TierOutcome::kChecksum && end.bytes == kRecordAlignment) {
    // There may be a longer one; its checksum decides.
    std::memcpy(&header_bytes, header_.get() + 76, sizeof header_bytes);
    if (header_bytes % kRecordAlignment == 0 && header_bytes > kRecordAlignment &&
        header_bytes <= kRecordHeaderBytesMax) {
      end = read_header(file, offset, header_bytes, header);
    }
  }
  if (end.outcome != TierOutcome::kDone) return end;
  int64_t at = header.header_bytes, left = header.payload_bytes;
  while (left > 0) {
    int64_t wanted = std::min<int64_t>(kBufferBytes, header.bytes() - at);
    iovec part{.iov_base = buffer_.get(), .iov_len = as_size(wanted)};
    RecordEnd chunk = move_all(Way::kRead, file, offset + at, {&part, 1});
    end.bytes += chunk.bytes;
    if (chunk.outcome != TierOutcome::kDone) {
      (void)checksums_.finish();
      return {chunk.outcome, chunk.error, end.bytes};
    }
    auto useful = as_size(std::min(wanted, left));
    checksums_.add({buffer_.get(), useful});
    at += wanted;
    left -= useful;
  }
  if (checksums_.finish() != header.payload) end.outcome = TierOutcome::kChecksum;
  return end;
}

RecordEnd RecordIo::move(Way way, StorageFile& file, int64_t offset, const RecordShape& shape,
                         std::span<const TierPiece> pieces) {
  CHECK(total(pieces) == shape.payload_bytes, "{} bytes in pieces, not {}", total(pieces),
        shape.payload_bytes);
  std::span<std::byte> head = header(shape);
  parts_.assign(1, {.iov_base = head.data(), .iov_len = head.size()});
  for (const TierPiece& piece : pieces) {
    if (piece.bytes > 0) parts_.push_back({.iov_base = piece.data, .iov_len = piece.bytes});
  }
  int64_t padding = shape.bytes() - shape.header_bytes() - shape.payload_bytes;
  if (padding > 0) {
    parts_.push_back({.iov_base = padding_.get(), .iov_len = as_size(padding)});
  }
  if (file.direct() && !std::ranges::all_of(parts_, is_aligned)) {
    return move_by_buffer(way, file, offset);
  }
  RecordEnd end = move_straight(way, file, offset);
  // A device may need more than kDirectAlignment; the buffer satisfies it.
  return end.error == EINVAL && file.direct() ? move_by_buffer(way, file, offset) : end;
}

RecordEnd RecordIo::move_straight(Way way, StorageFile& file, int64_t offset) {
  rest_ = parts_;
  return move_all(way, file, offset, rest_);
}

RecordEnd RecordIo::move_by_buffer(Way way, StorageFile& file, int64_t offset) {
  RecordEnd end;
  size_t bytes = total(parts_);
  for (size_t at = 0; at < bytes && end.outcome == TierOutcome::kDone;) {
    std::span<std::byte> chunk(buffer_.get(), std::min(kBufferBytes, bytes - at));
    if (way == Way::kWrite) copy_parts(parts_, at, chunk, false);
    iovec part{.iov_base = chunk.data(), .iov_len = chunk.size()};
    RecordEnd moved = move_all(way, file, offset + at, {&part, 1});
    if (way == Way::kRead) copy_parts(parts_, at, chunk, true);
    end = {moved.outcome, moved.error, end.bytes + moved.bytes};
    at += chunk.size();
  }
  return end;
}

// Repeats until everything has moved, since the system may move less than requested. Consumes
// `parts`.
RecordEnd RecordIo::move_all(Way way, StorageFile& file, int64_t offset, std::span<iovec> parts) {
  RecordEnd end;
  while (!parts.empty()) {
    int64_t count = way == Way::kRead ? file.read(parts, offset) : file.write(parts, offset);
    if (count <= 0) {
      RecordEnd why = failed(way == Way::kWrite && count == 0 ? -EIO : count);
      return {why.outcome, why.error, end.bytes};
    }
    end.bytes += count;
    offset += count;
    auto left = as_size(count);
    while (!parts.empty() && left >= parts.front().iov_len) {
      left -= parts.front().iov_len;
      parts = parts.subspan(1);
    }
    if (left == 0) continue;
    parts.front().iov_base = static_cast<std::byte*>(parts.front().iov_base) + left;
    parts.front().iov_len -= left;
  }
  return end;
}

}  // namespace banyan
