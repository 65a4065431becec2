// Stands in for kernels/x86 on other processors.
#include "kernels/x86/x86.h"

namespace banyan::x86 {

std::vector<MeasuredTable> runnable_tables() {
  return {};
}

}  // namespace banyan::x86
