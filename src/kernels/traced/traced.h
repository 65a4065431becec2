// A table that runs the kernels of another table and logs when each of them ran. For a device, that
// is when the kernel was enqueued.
#pragma once

#include "base/trace_log.h"
#include "kernels/kernel_table.h"

namespace banyan {

// Kernels are stateless functions, so the log is thread-local: that of the TracedKernels last
// entered on the thread.
class TracedKernels {
 public:
  // Both must outlive it.
  TracedKernels(const KernelTable& inner, TraceLog& log);
  TracedKernels(const TracedKernels&) = delete;
  TracedKernels& operator=(const TracedKernels&) = delete;

  // Call before kernels of the table run on this thread.
  const KernelTable& enter() const;

  const KernelTable& inner() const { return inner_; }
  TraceLog& log() const { return log_; }

 private:
  const KernelTable& inner_;
  TraceLog& log_;
  KernelTable table_;
};

}  // namespace banyan
