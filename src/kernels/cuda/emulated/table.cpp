#include "kernels/cuda/table.h"

#include "kernels/cuda/emulated/device.h"
#include "kernels/cuda/emulated/emulated.h"

namespace banyan::cuda::emulated {

const KernelTable& table() {
  static const KernelTable kTable = kernel_table<Device>("emulated cuda", kHostDevice);
  return kTable;
}

}  // namespace banyan::cuda::emulated
