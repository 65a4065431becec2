// Moves records between files and pools. Bytes go directly from and to the pools if they are
// aligned as the file requires, otherwise through a buffer. One thread.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "tier/record.h"
#include "tier/storage.h"

namespace banyan {

// The outcome of moving a record.
struct RecordEnd {
  TierOutcome outcome = TierOutcome::kDone;
  int error = 0;      // errno, with kFailed
  int64_t bytes = 0;  // bytes that were moved
};

class RecordIo {
 public:
  explicit RecordIo(const std::optional<RecordKey>& key = std::nullopt);

  RecordEnd write(StorageFile& file, int64_t offset, const RecordShape& shape,
                  const TierRecord& record, std::span<const TierPiece> pieces,
                  uint64_t write_number);
  // The pieces are only valid after kDone.
  RecordEnd read(StorageFile& file, int64_t offset, const RecordShape& shape,
                 const TierRecord& record, std::span<const TierPiece> pieces);
  // Reads the record at `offset`, whatever it is, only to verify its checksums. `header` gets its
  // fields; its tokens are valid until the next call.
  RecordEnd verify(StorageFile& file, int64_t offset, RecordHeader& header);
  // The same for its header alone.
  RecordEnd read_header(StorageFile& file, int64_t offset, int64_t header_bytes,
                        RecordHeader& header);

 private:
  enum class Way : uint8_t { kRead, kWrite };
  struct FreeAligned {
    void operator()(std::byte* bytes) const { std::free(bytes); }
  };
  using Buffer = std::unique_ptr<std::byte, FreeAligned>;

  static Buffer aligned(size_t bytes);
  std::span<std::byte> header(const RecordShape& shape);
  // Moves header, pieces and padding.
  RecordEnd move(Way way, StorageFile& file, int64_t offset, const RecordShape& shape,
                 std::span<const TierPiece> pieces);
  RecordEnd move_straight(Way way, StorageFile& file, int64_t offset);
  RecordEnd move_by_buffer(Way way, StorageFile& file, int64_t offset);
  RecordEnd move_all(Way way, StorageFile& file, int64_t offset, std::span<iovec> parts);

  Buffer header_, padding_, buffer_;
  std::vector<iovec> parts_, rest_;
  Checksummer checksums_;
};

}  // namespace banyan
