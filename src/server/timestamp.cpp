#include "server/timestamp.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

namespace banyan {

std::string rfc3339(std::chrono::system_clock::time_point time) {
  using std::chrono::duration_cast, std::chrono::microseconds, std::chrono::seconds;
  auto since_epoch = time.time_since_epoch();
  auto whole = duration_cast<seconds>(since_epoch);
  auto rest = duration_cast<microseconds>(since_epoch - whole);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:06}Z",
                     fmt::gmtime(static_cast<std::time_t>(whole.count())), rest.count());
}

}  // namespace banyan
