// Tables for debugging code that launches kernels: kernels of the host on a device that guards its
// memory. Calls are enqueued with copies of their argument structs only and run when the queue
// is synchronised, or as far as a mark when that is waited for; outside that time, access to device
// memory faults. They catch a host that reads results too early, writes while a kernel reads, or
// passes a host array that dies before the kernel runs, without needing a GPU.
#pragma once

#include "kernels/kernel_table.h"

namespace banyan::fenced {

const KernelTable& table();          // the portable kernels
const KernelTable& emulated_cuda();  // the CUDA kernels, emulated (cuda/emulated/emulated.h)

// Lists of kernels that queues of this process have run in a row, between copies, and how many of
// them had come before with the same arguments: a GPU launches those as graphs (cuda/launches.h).
struct Lists {
  uint64_t all, repeated;
};
Lists lists();

}  // namespace banyan::fenced
