// Which processor this is, as it says itself.
#pragma once

#include <string>

namespace banyan {

// Of x86-64 what cpuid says: nothing that an update of the microcode changes, and not which
// instructions it has, which the tables that it runs say. Empty on other processors.
struct Processor {
  std::string vendor;  // "AuthenticAMD"
  int family = 0, model = 0, stepping = 0;

  bool operator==(const Processor&) const = default;
};

Processor this_processor();

}  // namespace banyan
