// The AMX table over emulated tile registers, for processors without them.
#pragma once

#include "kernels/kernel_table.h"
#include "kernels/x86/x86.h"

namespace banyan::test {

extern const x86::TileProducts kEmulatedProducts;  // not defined on other processors than x86-64

// Null where the vector code of the table does not run either.
const KernelTable* emulated_amx();

}  // namespace banyan::test
