// Writes JSON for other programs.
#pragma once

#include <string>

#include "base/json.h"

namespace banyan {

// On one line. Invalid UTF-8 (a model may stop inside a character) becomes U+FFFD; NaN and infinity
// become null.
inline std::string dump_json(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace banyan
