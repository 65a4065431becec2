// Formats points in time for protocols. Stateless; thread-safe.
#pragma once

#include <chrono>
#include <string>

namespace banyan {

// RFC 3339: "2026-11-23T00:17:57.123456Z".
std::string rfc3339(std::chrono::system_clock::time_point time);

}  // namespace banyan
