// The identity of the processor.
#pragma once

#include <string>

namespace banyan {

// From cpuid on x86-64. Excludes what a microcode update changes, and features, which
// runnable_tables() reports. Empty on other processors.
struct Processor {
  std::string vendor;  // "AuthenticAMD"
  int family = 0, model = 0, stepping = 0;

  bool operator==(const Processor&) const = default;
};

Processor this_processor();

}  // namespace banyan
