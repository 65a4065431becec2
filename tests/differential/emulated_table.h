// The AMX table over emulated tile registers, for processors without them.
#pragma once

#include <vector>

#include "kernels/kernel_table.h"
#include "kernels/x86/x86.h"

namespace banyan::test {

extern const simd::TileProducts kEmulatedProducts;  // not defined on other processors than x86-64

// Every table that runs here, and AMX over emulated tiles where the rest of its table does.
std::vector<const KernelTable*> tables_and_emulated();

}  // namespace banyan::test
