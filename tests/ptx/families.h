// Families of instructions: what decodes each name (line.h).
#pragma once

#include <span>
#include <string_view>

#include "ptx/line.h"

namespace banyan::ptx {

struct Rule {
  std::string_view name;
  void (*decode)(Line&);
};

namespace arithmetic {
std::span<const Rule> rules();
}
namespace bits {
std::span<const Rule> rules();
}
namespace comparison {
std::span<const Rule> rules();
}
namespace conversion {
std::span<const Rule> rules();
}
namespace move {
std::span<const Rule> rules();
}
namespace memory {
std::span<const Rule> rules();
}
namespace control {
std::span<const Rule> rules();
}
namespace exchange {
std::span<const Rule> rules();
}
namespace mbarriers {
std::span<const Rule> rules();
}
namespace copies {
std::span<const Rule> rules();
void decode_store(Line& line);  // st.async
}  // namespace copies
namespace fences {
std::span<const Rule> rules();
}
namespace wgmma {
std::span<const Rule> rules();
}

}  // namespace banyan::ptx
