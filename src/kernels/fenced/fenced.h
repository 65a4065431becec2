// A table for debugging what runs kernels: the portable ones on a device that is strict about its
// memory. Calls are queued with copies of their argument structs, and of nothing else, and done
// when the queue is synchronised; until then, and again afterwards, nobody may touch memory of the
// device. So a host that reads a result too early, writes where a kernel reads, or passes an array
// of its own that dies before the kernel runs, is found without a device that would do the same.
#pragma once

#include "kernels/kernel_table.h"

namespace banyan::fenced {

const KernelTable& table();

}  // namespace banyan::fenced
