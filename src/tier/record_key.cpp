#include "tier/record_key.h"

#include "base/digest.h"
#include "base/error.h"
#include "base/file.h"

namespace banyan {
namespace {

constexpr size_t kKeyFileBytesMin = 16, kKeyFileBytesMax = 64 << 10;

}  // namespace

std::string RecordKey::fingerprint() const {
  Hasher hasher;
  hasher.text("banyan record key").bytes(std::as_bytes(std::span(bytes)));
  return hasher.finish().hex().substr(0, 16);
}

Result<RecordKey> read_record_key(const std::string& path) {
  std::string text = TRY(read_file(path, kKeyFileBytesMax));
  if (text.size() < kKeyFileBytesMin) {
    return invalid_argument("{}: the key has {} bytes; it needs at least {}", path, text.size(),
                            kKeyFileBytesMin);
  }
  Hasher hasher;
  hasher.bytes(std::as_bytes(std::span(text)));
  return RecordKey{hasher.finish().bytes};
}

}  // namespace banyan
