// The kernels of this folder and the memory that they use, on a GPU.
#include "kernels/cuda/device/float_types.cuh"

#include <map>

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/device/block.cuh"
#include "kernels/cuda/device/fragment_gemm.cuh"
#include "kernels/cuda/device/queue.cuh"
#include "kernels/cuda/device/tensor_attention.cuh"
#include "kernels/cuda/device/tensor_gemm.cuh"
#include "kernels/cuda/table.h"

namespace banyan::cuda {
namespace device {

// By the first block, for all.
__device__ inline void prefetch(const Constants& constants) {
  constexpr int64_t kLine = 128 / sizeof(float);
  if (blockIdx.x > 0) return;
  for (int64_t i = threadIdx.x * kLine; i < constants.count; i += kBlockThreads * kLine) {
    prefetch_line(constants.data + i);
  }
}

template <class Kernel>
__global__ __launch_bounds__(kBlockThreads) void run(const __grid_constant__ Kernel kernel,
                                                     std::byte* scratch, size_t scratch_bytes) {
  let_next_kernel_begin();
  if constexpr (requires { kernel.constants(); }) prefetch(kernel.constants());
  wait_for_earlier_kernels();
  Block<kBlockThreads> block(scratch, scratch_bytes);
  kernel(block);
}

struct Device {
  template <class Kernel>
  static void launch(void* queue, const Kernel& kernel) {
    queue_of(queue).collected().add(kernel);
  }
  template <class T>
  static void multiply_tiles(const TensorProduct& product) {
    queue_of(product.args.launch.queue)
        .collected()
        .add_product(product, [](const TensorProduct& what) { device::multiply_tiles<T>(what); });
  }
  template <Format F>
  static void multiply_fragments(const GemmArgs& args) {
    queue_of(args.launch.queue).collected().add_product({args}, [](const TensorProduct& what) {
      device::multiply_fragments<F>(what.args);
    });
  }
  static void attend_tiles(const AttentionArgs& args) {
    queue_of(args.launch.queue).collected().add(AttendTiles{args});
  }
  static constexpr int64_t kTileBytes = Queue::kScratchBytes;
  static std::byte* scratch(void* queue, size_t /*bytes*/) { return queue_of(queue).scratch(); }

  template <class Kernel>
  static void issue(void* to, const void* what) {
    const auto& kernel = *static_cast<const Kernel*>(what);
    if constexpr (std::is_same_v<Kernel, AttendTiles>) {
      device::attend_tiles(kernel.a, [&](MergeParts merge) {
        merge.rounded = kernel.rounded;
        merge.quantised = kernel.quantised;
        issue_on(queue_of(to), merge);
      });
    } else {
      issue_on(queue_of(to), kernel);
    }
  }

 private:
  template <class Kernel>
  static void issue_on(Queue& queue, const Kernel& kernel) {
    Shape shape = kernel.shape();
    auto* function = run<Kernel>;
    // By the bytes of shared memory: asking takes longer than a launch.
    static thread_local std::map<size_t, int> known;
    auto [found, is_new] = known.try_emplace(shape.shared_bytes);
    if (is_new) {
      found->second = resident_blocks(reinterpret_cast<const void*>(function),
                                      known.rbegin()->first, shape.shared_bytes);
    }
    int64_t fill = int64_t{found->second} * queue.multiprocessors();
    int64_t blocks = shape.blocks > 0 ? least(shape.blocks, fill) : fill;
    size_t scratch_bytes = (shape.scratch_bytes + 255) / 256 * 256;
    if (scratch_bytes > 0) {
      blocks = least(blocks, static_cast<int64_t>(Queue::kScratchBytes / scratch_bytes));
    }
    launch_early(queue, function, {blocks, kBlockThreads, shape.shared_bytes}, kernel,
                 queue.scratch(), scratch_bytes);
  }

  // How many blocks of a kernel with so much shared memory a multiprocessor holds. Others of its
  // launches may have up to `most`.
  static int resident_blocks(const void* function, size_t most, size_t shared_bytes) {
    constexpr size_t kSharedByDefault = size_t{48} << 10;  // a kernel must request more
    if (most > kSharedByDefault) {
      BANYAN_CHECK_CUDA(cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                             static_cast<int>(most)));
    }
    // As products and attention do: kernels whose preferences differ do not share a multiprocessor.
    BANYAN_CHECK_CUDA(cudaFuncSetAttribute(function, cudaFuncAttributePreferredSharedMemoryCarveout,
                                           cudaSharedmemCarveoutMaxShared));
    int blocks = 0;
    BANYAN_CHECK_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function,
                                                                    kBlockThreads, shared_bytes));
    return blocks;
  }
};

// What is allocated was planned from what was free, so that another program has taken it since.
[[noreturn]] void end_without_memory(size_t bytes) {
  size_t free = 0, total = 0;
  BANYAN_CHECK_CUDA(cudaMemGetInfo(&free, &total));
  std::fprintf(stderr,
               "out of GPU memory: %zu MB asked for, %zu of %zu MB are free; stop other "
               "programs on the GPU, or lower --mem-fraction-static\n",
               bytes >> 20, free >> 20, total >> 20);
  std::_Exit(1);
}

std::byte* allocate(void* queue, size_t bytes) {
  void* data = nullptr;
  queue_of(queue).flush();
  cudaError_t error = cudaMalloc(&data, bytes);
  if (error == cudaErrorMemoryAllocation) end_without_memory(bytes);
  check(error, "cudaMalloc");
  BANYAN_CHECK_CUDA(cudaMemsetAsync(data, 0, bytes, queue_of(queue).stream()));
  return static_cast<std::byte*>(data);
}

void release(void* queue, std::byte* data, size_t) {
  queue_of(queue).synchronise();
  BANYAN_CHECK_CUDA(cudaFree(data));
}

void download(void* queue, void* to, const void* from, size_t bytes) {
  queue_of(queue).flush();
  BANYAN_CHECK_CUDA(
      cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, queue_of(queue).stream()));
}

// Pinned.
std::byte* allocate_host(void*, size_t bytes) {
  void* data = nullptr;
  BANYAN_CHECK_CUDA(cudaMallocHost(&data, bytes));
  return static_cast<std::byte*>(data);
}

int64_t available_bytes(void*) {
  size_t free = 0, total = 0;
  BANYAN_CHECK_CUDA(cudaMemGetInfo(&free, &total));
  return static_cast<int64_t>(free);
}

const DeviceOps kGpu = {
    .name = "cuda",
    .open_queue = []() -> void* { return new Queue; },
    .close_queue = [](void* queue) { delete static_cast<Queue*>(queue); },
    .allocate = allocate,
    .release = release,
    .upload = [](void* queue, void* to, const void* from,
                 size_t bytes) { queue_of(queue).upload(to, from, bytes); },
    .upload_pinned = [](void* queue, void* to, const void* from,
                        size_t bytes) { queue_of(queue).upload_pinned(to, from, bytes); },
    .download = download,
    .synchronise = [](void* queue) { queue_of(queue).synchronise(); },
    .available_bytes = available_bytes,
    .mark = [](void* queue) { return queue_of(queue).mark(); },
    .reached = [](void* queue, uint64_t mark) { return queue_of(queue).reached(mark); },
    .wait = [](void* queue, uint64_t mark) { queue_of(queue).wait(mark); },
    .allocate_host = allocate_host,
    .release_host = [](void*, std::byte* data, size_t) { BANYAN_CHECK_CUDA(cudaFreeHost(data)); },
};

// Why no kernel can run on this machine, or null.
const char* obstacle() {
  int count = 0;
  cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) return cudaGetErrorString(error);
  if (count == 0) return "there is no CUDA device";
  int major = 0;
  BANYAN_CHECK_CUDA(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
  return major == 9 ? nullptr : "the kernels need compute capability 9.0 (Hopper)";
}

}  // namespace device

GpuTable gpu_table() {
  static const char* const kObstacle = device::obstacle();
  if (kObstacle != nullptr) return {nullptr, kObstacle};
  static const KernelTable kTable = kernel_table<device::Device>(kTableName, device::kGpu);
  return {&kTable, ""};
}

}  // namespace banyan::cuda
