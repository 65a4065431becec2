// The kernel table of this folder, for whatever device runs its kernels. A device has
//
//   template <class Kernel> static void launch(void* queue, const Kernel& kernel);
//   // From what RoundRows or ScaleRows wrote (tensor_gemm.h); of elements bf16 or f16.
//   template <class> static void multiply_tiles(const TensorProduct&);
//   // From what QuantiseRows or RoundRows wrote, if weights lie in fragments (fragment_gemm.h).
//   template <Format> static void multiply_fragments(const GemmArgs&);
//   static void attend_tiles(const AttentionArgs&);  // tensor_attention.h
//   // Memory for what a launch leaves to the next one, until something else is launched.
//   static std::byte* scratch(void* queue, size_t bytes);
//   static constexpr int64_t kTileBytes;  // of it, for tiles of prompts (state_tiles.h)
#pragma once

#include <cstdio>
#include <cstdlib>

#include "kernels/cuda/attention.h"
#include "kernels/cuda/copies.h"
#include "kernels/cuda/delta.h"
#include "kernels/cuda/draw.h"
#include "kernels/cuda/gemm.h"
#include "kernels/cuda/gemm_f32.h"
#include "kernels/cuda/logit_statistics.h"
#include "kernels/cuda/moe.h"
#include "kernels/cuda/pack.h"
#include "kernels/cuda/place_heads.h"
#include "kernels/cuda/pooled.h"
#include "kernels/cuda/prepare_state_tiles.h"
#include "kernels/cuda/recurrent.h"
#include "kernels/cuda/rms_norm.h"
#include "kernels/cuda/rowwise.h"
#include "kernels/cuda/scaled_rows.h"
#include "kernels/cuda/scan_state_tiles.h"
#include "kernels/cuda/sparse.h"
#include "kernels/cuda/tensor_attention.h"
#include "kernels/cuda/tensor_gemm.h"
#include "kernels/kernel_table.h"
#include "kernels/place_heads.h"

namespace banyan::cuda {

template <class Device, class Kernel, class Args>
void launch(const Args& args) {
  Device::launch(args.launch.queue, Kernel{args});
}

// Launches the kernel for rows of a pool's type.
template <class Device, template <class> class Kernel, class Args>
void launch_for(DType dtype, const Args& args) {
  if (dtype == DType::kBF16) return launch<Device, Kernel<BFloat16>>(args);
  if (dtype == DType::kF16) return launch<Device, Kernel<Float16>>(args);
  if (dtype == DType::kI8) return launch<Device, Kernel<int8_t>>(args);
  if (dtype == DType::kF8E4M3) return launch<Device, Kernel<Float8E4M3>>(args);
  launch<Device, Kernel<float>>(args);
}

template <class Device>
void sort_experts(const SortExpertsArgs& args) {
  if (SortFewExperts::fits(args)) return launch<Device, SortFewExperts>(args);
  launch<Device, CountExperts>(args);
  launch<Device, BeginExperts>(args);
  launch<Device, PlaceExperts>(args);
}

template <class Device, Format F>
void run_gemm(const GemmArgs& args) {
  if constexpr (F == Format::kF32) {
    multiply_f32<Device>(args);
  } else if constexpr (is_tiled(F)) {
    launch<Device, std::conditional_t<F == Format::kF16, ScaleRows, RoundRows>>(args);
    Device::template multiply_tiles<Element16<F>>({args});
  } else {
    if constexpr (has_integers(F)) launch<Device, QuantiseRows>(args);
    if constexpr (has_scales(F)) {
      if (in_fragments(F, args.k, args.group)) {
        if (F == Format::kFp8) launch<Device, RoundRows>(args);
        return Device::template multiply_fragments<F>(args);
      }
    }
    launch<Device, Gemm<F>>(args);
  }
}

template <class Device, Format F>
void run_gated(const GatedGemmArgs& args) {
  launch<Device, std::conditional_t<F == Format::kF16, ScaleRows, RoundRows>>(args.product);
  Device::template multiply_tiles<Element16<F>>({args.product, {args.activation}});
}

template <Format F>
size_t gemm_workspace_bytes(int64_t rows, int64_t segments, int64_t k, int64_t group) {
  if (is_tiled(F) || F == Format::kFp8) return rounded_bytes<Element16<F>>(rows, segments, k);
  return has_integers(F) ? QuantisedRows::bytes(rows, segments, k, group) : 0;
}

template <class Device, Format F>
GemmKernel gemm_kernel() {
  GemmKernel kernel = {.packed_bytes = Packed<F>::bytes,
                       .workspace_bytes = gemm_workspace_bytes<F>,
                       .pack = pack_weights<F>,
                       .gather = launch<Device, Gather<F>, GatherArgs>,
                       .run = run_gemm<Device, F>,
                       .block_rows = Packed<F>::block_rows};
  if constexpr (is_tiled(F)) {
    kernel.gates = may_activate;
    kernel.run_gated = run_gated<Device, F>;
  }
  return kernel;
}

template <class Device>
void attention(const AttentionArgs& args) {
  if (on_tensor_cores(args)) return Device::attend_tiles(args);
  launch_for<Device, Attention>(args.pool_dtype, args);
}

template <class Device>
void latent_attention(const LatentAttentionArgs& args) {
  if (on_tensor_cores(args)) return Device::attend_tiles(attention_of(args));
  launch_for<Device, LatentAttention>(args.pool_dtype, args);
}

template <class Device>
void page_write(const PageWriteArgs& args) {
  launch_for<Device, PageWrite>(args.pool_dtype, args);
}

template <class Device>
void place_heads(const PlaceHeadsArgs& args) {
  if (args.normed_columns() <= RmsNorm::kWarpColumns) {
    return launch_for<Device, PlaceHeads>(args.pool_dtype, args);
  }
  place_heads_by<launch<Device, RmsNorm, RmsNormArgs>, launch<Device, Rope, RopeArgs>,
                 page_write<Device>>(args);
}

// Nothing would be launched for rows that nobody has counted.
inline const SlotRows& counted(const SlotRows& rows) {
  if (rows.prompt_chunks >= 0) return rows;
  std::fputs("SlotSpans::rows of a recurrence were not counted (kernels/slot_rows.h)\n", stderr);
  std::abort();
}

// Prompts in tiles, as many at a time as have memory, then all other rows.
template <class Device, class Kernel, class Args>
void recur(const Args& args) {
  if (!in_tiles(args)) return launch<Device, Kernel>(args);
  const SlotRows& rows = counted(args.spans.rows);
  int64_t count = rows.prompt_chunks * (args.chunk / kStateTile);
  StateTiles tiles = {.heads = args.heads,
                      .bytes = PreparedTile::bytes(Kernel::kCorrects, args.value_dim)};
  int64_t tiles_max = Device::kTileBytes / (tiles.bytes * args.heads);  // room for 1,000 heads
  if (tiles_max == 0) tiles_max = 1;
  for (; tiles.first < count; tiles.first += tiles_max) {
    tiles.count = least(tiles_max, count - tiles.first);
    tiles.scratch = Device::scratch(args.launch.queue, static_cast<size_t>(tiles.total_bytes()));
    Device::launch(args.launch.queue, PrepareStateTiles<Kernel>{{args}, tiles});
    Device::launch(args.launch.queue, ScanStateTiles<Kernel>{{args}, tiles});
  }
  if (rows.has_others) launch<Device, Kernel>(args);
}

template <class D>
KernelTable kernel_table(const char* name, const DeviceOps& device) {
  return {
      .name = name,
      .device = &device,
      .gemm_f32 = gemm_kernel<D, Format::kF32>(),
      .gemm_bf16 = gemm_kernel<D, Format::kBF16>(),
      .gemm_f16 = gemm_kernel<D, Format::kF16>(),
      .gemm_int8 = gemm_kernel<D, Format::kInt8>(),
      .gemm_int4 = gemm_kernel<D, Format::kInt4>(),
      .gemm_uint4 = gemm_kernel<D, Format::kUint4>(),
      .gemm_mxfp4 = gemm_kernel<D, Format::kMxfp4>(),
      .gemm_fp8 = gemm_kernel<D, Format::kFp8>(),
      .rms_norm = launch<D, RmsNorm>,
      .rope_angles = launch<D, RopeAngles>,
      .rope = launch<D, Rope>,
      .silu_mul = launch<D, SiluMul>,
      .scale = launch<D, Scale>,
      .gate_mul = launch<D, GateMul>,
      .add = launch<D, Add>,
      .logit_stats = logit_statistics<D>,
      .route = launch<D, Route>,
      .sort_experts = sort_experts<D>,
      .combine_experts = launch<D, CombineExperts>,
      .copy_rows = launch<D, CopyRows>,
      .add_rows = launch<D, AddRows>,
      .copy_units = launch<D, CopyUnits>,
      .page_write = page_write<D>,
      .place_heads = place_heads<D>,
      .page_read = [](const PageReadArgs& a) { launch_for<D, PageRead>(a.pool_dtype, a); },
      .key_sums = [](const KeySumsArgs& a) { launch_for<D, KeySums>(a.key_dtype, a); },
      .block_scores = launch<D, BlockScores>,
      .block_maxima = [](const BlockMaximaArgs& a) { launch_for<D, BlockMaxima>(a.key_dtype, a); },
      .select_keys = launch<D, SelectKeys>,
      .index_scores = [](const IndexScoresArgs& a) { launch_for<D, IndexScores>(a.key_dtype, a); },
      .hadamard = launch<D, Hadamard>,
      .layer_norm = launch<D, LayerNorm>,
      .attention = attention<D>,
      .latent_attention = latent_attention<D>,
      .linear_attention = recur<D, LinearAttention>,
      .delta_attention = recur<D, DeltaAttention>,
      .delta_gates = launch<D, DeltaGates>,
      .state_space = recur<D, StateSpace>,
      .state_space_gates = launch<D, StateSpaceGates>,
      .short_conv = launch<D, ShortConv>,
      .draw = launch<D, Draw>,
      .resolve_tokens = launch<D, ResolveTokens>,
      .follow_drafts = launch<D, FollowDrafts>,
      .pool_keys = [](const PoolKeysArgs& a) { launch_for<D, PoolKeys>(a.key_dtype, a); },
      .pooled_attention = launch<D, PooledAttention>,
  };
}

}  // namespace banyan::cuda
