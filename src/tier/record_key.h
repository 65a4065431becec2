// A key whose holders alone write records that are believed. With it a store may be one that others
// can write to: they may damage or remove records, and plant none.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "banyan/status.h"

namespace banyan {

struct RecordKey {
  std::array<uint8_t, 32> bytes = {};

  // Says which key it is and nothing else about it.
  std::string fingerprint() const;
};

// From a file of at least 16 bytes, every one of which counts.
Result<RecordKey> read_record_key(const std::string& path);

}  // namespace banyan
