// The processor as cpuid describes it.
#include "kernels/choice/processor.h"

#include <cpuid.h>

#include <array>
#include <cstring>

namespace banyan {

// Intel SDM volume 2, CPUID with EAX = 01H: the extended family counts if the family is 15, the
// extended model also if it is 6. AMD is the same, except that its current processors are not
// family 6.
Processor this_processor() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  Processor processor;
  if (!__get_cpuid(0, &eax, &ebx, &ecx, &edx)) return processor;
  std::array<unsigned, 3> words = {ebx, edx, ecx};
  std::array<char, sizeof(words)> vendor;
  std::memcpy(vendor.data(), words.data(), vendor.size());
  processor.vendor.assign(vendor.begin(), vendor.end());
  if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx)) return processor;
  auto field = [&](int first, unsigned mask) { return static_cast<int>(eax >> first & mask); };
  processor.stepping = field(0, 15);
  processor.model = field(4, 15);
  processor.family = field(8, 15);
  if (processor.family == 6 || processor.family == 15) processor.model += field(16, 15) << 4;
  if (processor.family == 15) processor.family += field(20, 255);
  return processor;
}

}  // namespace banyan
