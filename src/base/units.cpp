#include "base/units.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string_view>

namespace banyan {
namespace {

// Three significant digits and one of `units`, each 1000 times the previous one.
std::string scaled(int64_t value, const std::array<std::string_view, 6>& units) {
  double x = value;
  size_t unit = 0;
  while (std::fabs(x) >= 999.5 && unit + 1 < units.size()) {
    x /= 1000;
    ++unit;
  }
  int decimals = unit == 0 || std::fabs(x) >= 99.95 ? 0 : std::fabs(x) >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f}{}", x, decimals, units[unit]);
}

}  // namespace

std::string format_bytes(int64_t bytes) {
  return scaled(bytes, {" B", " kB", " MB", " GB", " TB", " PB"});
}

std::string format_count(int64_t count) {
  return scaled(count, {"", " k", " M", " B", " T", " Q"});
}

}  // namespace banyan
