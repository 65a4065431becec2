// The tables for x86-64 processors. kernels/no_x86.cpp stands in on others.
#pragma once

#include <vector>

#include "kernels/kernel_table.h"

namespace banyan {

// The x86 tables that this processor and operating system can run, slowest first.
std::vector<const KernelTable*> x86_kernels();

}  // namespace banyan
