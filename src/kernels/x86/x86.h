// The tables for x86-64 processors. kernels/no_x86.cpp stands in on others.
#pragma once

#include <vector>

#include "kernels/kernel_table.h"

namespace banyan::x86 {

// To be used only where runnable_tables() has them.
extern const KernelTable kAvx2;
extern const KernelTable kAvx512;
extern const KernelTable kAvx512Bf16;
extern const KernelTable kAmx;

// The tables that this processor and operating system can run, slowest first.
std::vector<const KernelTable*> runnable_tables();

}  // namespace banyan::x86
