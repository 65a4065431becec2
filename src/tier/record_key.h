// A key that authenticates records: only records written with it are accepted. So a store may be
// writable by others. They can damage or remove records, but not forge any.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "banyan/status.h"

namespace banyan {

struct RecordKey {
  std::array<uint8_t, 32> bytes = {};

  // Identifies the key and reveals nothing else about it.
  std::string fingerprint() const;
};

// From a file of at least 16 bytes, all of which count.
Result<RecordKey> read_record_key(const std::string& path);

}  // namespace banyan
