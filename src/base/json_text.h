// JSON as it is written for others to read.
#pragma once

#include <string>

#include "base/json.h"

namespace banyan {

// On one line. Text that is not UTF-8 (a model may stop within a character) gets U+FFFD, and
// numbers that JSON lacks become null.
inline std::string dump_json(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace banyan
