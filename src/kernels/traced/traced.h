// A table that runs the kernels of another and notes when each of them ran. Of a device, that is
// when the kernel was enqueued.
#pragma once

#include "base/trace_log.h"
#include "kernels/kernel_table.h"

namespace banyan {

// Kernels are functions without state, so which log they write is that of the thread: the traced
// kernels that were entered last on it.
class TracedKernels {
 public:
  // Both must outlive it.
  TracedKernels(const KernelTable& inner, TraceLog& log);
  TracedKernels(const TracedKernels&) = delete;
  TracedKernels& operator=(const TracedKernels&) = delete;

  // Before kernels of the table run on this thread.
  const KernelTable& enter() const;

  const KernelTable& inner() const { return inner_; }
  TraceLog& log() const { return log_; }

 private:
  const KernelTable& inner_;
  TraceLog& log_;
  KernelTable table_;
};

}  // namespace banyan
