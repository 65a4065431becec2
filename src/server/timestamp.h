// Points in time as protocols write them.
#pragma once

#include <chrono>
#include <string>

namespace banyan {

// "2026-11-23T00:17:57.123456Z", as RFC 3339 has it.
std::string rfc3339(std::chrono::system_clock::time_point time);

}  // namespace banyan
