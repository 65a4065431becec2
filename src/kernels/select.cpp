#include "kernels/select.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/error.h"
#include "kernels/cuda/cuda.h"
#include "kernels/fenced/fenced.h"
#include "kernels/portable/portable.h"
#include "kernels/x86/x86.h"

namespace banyan {
namespace {

// Tables that exist only on some machines, in ascending order; refused with a better reason than
// "unknown".
constexpr std::array<std::string_view, 5> kOtherMachines = {"avx2", "avx512", "avx512_vnni",
                                                            "avx512_bf16", "amx"};

// For debugging.
std::array<const KernelTable*, 2> fenced_tables() {
  return {&fenced::table(), &fenced::emulated_cuda()};
}

std::vector<MeasuredTable> tables() {
  std::vector<MeasuredTable> all = {{&portable::table(), &portable::limit_probes()}};
  for (const MeasuredTable& table : simd::runnable_tables()) all.push_back(table);
  return all;
}

// For passes that only measure the arena.
constinit const DeviceOps kMeasuringDevice = {
    .name = "measuring",
    .upload = [](void*, void*, const void*, size_t) {},
    .upload_pinned = [](void*, void*, const void*, size_t) {},
};

GemmKernel measuring_gemm(const GemmKernel& like) {
  return {.packed_bytes = like.packed_bytes,
          .workspace_bytes = like.workspace_bytes,
          .pack = [](const PackArgs&) {},
          .gather = [](const GatherArgs&) {},
          .run = [](const GemmArgs&) {},
          .gates = like.gates,
          .run_gated = [](const GatedGemmArgs&) {}};
}

}  // namespace

std::string_view kernels_left_out() {
  const char* name = simd::table_left_out();
  return name == nullptr ? "" : name;
}

std::string left_out_message(std::string_view kernels) {
  return fmt::format(
      "this program has no \"{}\" kernels, which this processor could run, as it was compiled for "
      "another machine alone; compile it here, or with -DBANYAN_NATIVE=OFF",
      kernels);
}

Result<const KernelTable*> select_kernels(std::string_view name) {
  std::vector<MeasuredTable> all = tables();
  if (name == "auto") return all.back().table;
  for (const MeasuredTable& one : all) {
    if (one.table->name == name) return one.table;
  }
  for (const KernelTable* table : fenced_tables()) {
    if (table->name == name) return table;
  }
  if (name == cuda::kTableName) {
    cuda::GpuTable gpu = cuda::gpu_table();
    if (gpu.table != nullptr) return gpu.table;
    return unsupported("--device cuda: {}", gpu.reason);
  }
  std::string usable = fmt::format("auto, {}", fmt::join(available_kernels(), ", "));
  if (auto wanted = std::ranges::find(kOtherMachines, name); wanted != kOtherMachines.end()) {
    auto last = std::ranges::find(kOtherMachines, kernels_left_out());
    if (last != kOtherMachines.end() && wanted <= last) {
      return unsupported("{}; use one of: {}", left_out_message(name), usable);
    }
    return unsupported("this processor cannot run the \"{}\" kernels; use one of: {}", name,
                       usable);
  }
  return invalid_argument("unknown kernel table \"{}\"; use one of: {}", name, usable);
}

std::vector<std::string> available_kernels() {
  std::vector<std::string> names;
  for (const MeasuredTable& one : tables()) names.emplace_back(one.table->name);
  return names;
}

const LimitProbes& limit_probes(const KernelTable& table) {
  bool fenced = std::ranges::count(fenced_tables(), &table) > 0;
  if (fenced || table.name == std::string_view(cuda::kTableName)) return portable::limit_probes();
  std::vector<MeasuredTable> all = tables();
  auto it = std::ranges::find(all, &table, &MeasuredTable::table);
  CHECK(it != all.end(), "{}", table.name);
  return *it->limits;
}

KernelTable measuring_kernels(const KernelTable& like) {
  return {.name = "measuring",
          .device = &kMeasuringDevice,
          .gemm_f32 = measuring_gemm(like.gemm_f32),
          .gemm_bf16 = measuring_gemm(like.gemm_bf16),
          .gemm_f16 = measuring_gemm(like.gemm_f16),
          .gemm_int8 = measuring_gemm(like.gemm_int8),
          .gemm_int4 = measuring_gemm(like.gemm_int4),
          .gemm_uint4 = measuring_gemm(like.gemm_uint4),
          .gemm_mxfp4 = measuring_gemm(like.gemm_mxfp4),
          .gemm_fp8 = measuring_gemm(like.gemm_fp8),
          .gemm_q2 = measuring_gemm(like.gemm_q2),
          .gemm_q3 = measuring_gemm(like.gemm_q3),
          .gemm_q4 = measuring_gemm(like.gemm_q4),
          .gemm_q5 = measuring_gemm(like.gemm_q5),
          .gemm_q6 = measuring_gemm(like.gemm_q6),
          .gemm_iq4 = measuring_gemm(like.gemm_iq4),
          .rms_norm = [](const RmsNormArgs&) {},
          .rope_angles = [](const RopeAnglesArgs&) {},
          .rope = [](const RopeArgs&) {},
          .silu_mul = [](const SiluMulArgs&) {},
          .scale = [](const ScaleArgs&) {},
          .gate_mul = [](const GateMulArgs&) {},
          .add = [](const AddArgs&) {},
          .logit_stats = [](const LogitStatsArgs&) {},
          .route = [](const RouteArgs&) {},
          .sort_experts = [](const SortExpertsArgs&) {},
          .combine_experts = [](const CombineExpertsArgs&) {},
          .copy_rows = [](const CopyRowsArgs&) {},
          .add_rows = [](const AddRowsArgs&) {},
          .copy_units = [](const CopyUnitsArgs&) {},
          .page_write = [](const PageWriteArgs&) {},
          .place_heads = [](const PlaceHeadsArgs&) {},
          .page_read = [](const PageReadArgs&) {},
          .key_sums = [](const KeySumsArgs&) {},
          .block_scores = [](const BlockScoresArgs&) {},
          .block_maxima = [](const BlockMaximaArgs&) {},
          .select_keys = [](const SelectKeysArgs&) {},
          .index_scores = [](const IndexScoresArgs&) {},
          .hadamard = [](const HadamardArgs&) {},
          .layer_norm = [](const LayerNormArgs&) {},
          .attention = [](const AttentionArgs&) {},
          .latent_attention = [](const LatentAttentionArgs&) {},
          .linear_attention = [](const LinearAttentionArgs&) {},
          .delta_attention = [](const DeltaAttentionArgs&) {},
          .delta_gates = [](const DeltaGatesArgs&) {},
          .state_space = [](const StateSpaceArgs&) {},
          .state_space_gates = [](const StateSpaceGatesArgs&) {},
          .short_conv = [](const ShortConvArgs&) {},
          .draw = [](const DrawArgs&) {},
          .resolve_tokens = [](const ResolveTokensArgs&) {},
          .follow_drafts = [](const FollowDraftsArgs&) {},
          .pool_keys = [](const PoolKeysArgs&) {},
          .pooled_attention = [](const PooledAttentionArgs&) {}};
}

}  // namespace banyan
