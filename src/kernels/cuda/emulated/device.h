// Launches kernels on the host.
#pragma once

#include "kernels/cuda/emulated/block.h"
#include "kernels/cuda/emulated/tensor_attention.h"
#include "kernels/cuda/emulated/tensor_gemm.h"
#include "kernels/cuda/gemm.h"
#include "kernels/cuda/tensor_gemm.h"

namespace banyan::cuda::emulated {

struct Device {
  static constexpr int64_t kBlocks = 5;  // as many as fill this device: few, so that items queue

  // What a thread of the host needs to run kernels.
  struct State {
    Orders orders;
    Poisoned shared, scratch;
  };

  template <class Kernel>
  static void launch(void* /*queue*/, const Kernel& kernel) {
    static thread_local State state;
    Shape shape = kernel.shape();
    int64_t blocks = shape.blocks > 0 && shape.blocks < kBlocks ? shape.blocks : kBlocks;
    std::byte* shared = state.shared.at_least(shape.shared_bytes);
    std::byte* scratch = state.scratch.at_least(shape.scratch_bytes);
    bool descending = state.orders.descending();
    for (int64_t i = 0; i < blocks; ++i) {
      Block<kBlockThreads> block(descending ? blocks - 1 - i : i, blocks, shared, scratch,
                                 state.orders);
      kernel(block);
    }
  }

  template <class T>
  static void multiply_tiles(const TensorProduct& product) {
    emulated::multiply_tiles<T>(product.args);
    if (product.is_gated()) launch(product.args.launch.queue, product.activation);
  }
  // Sums of integers are exact, so that the plain kernel has their bits.
  template <Format F>
  static void multiply_fragments(const GemmArgs& args) {
    if (F == Format::kFp8) return multiply_fp8(args);
    launch(args.launch.queue, Gemm<F>{args});
  }
  static void attend_tiles(const AttentionArgs& args) { emulated::attend_tiles(args); }
  static constexpr int64_t kTileBytes = int64_t{1} << 20;  // few, so that tiles queue
  static std::byte* scratch(void* /*queue*/, size_t bytes) {
    static thread_local Poisoned scratch;
    return scratch.at_least(bytes);
  }
};

}  // namespace banyan::cuda::emulated
