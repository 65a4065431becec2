#include "kernels/x86/x86.h"

namespace banyan {

std::vector<const KernelTable*> x86_kernels() {
  return {};
}

}  // namespace banyan
