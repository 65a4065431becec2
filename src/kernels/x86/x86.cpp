#include "kernels/x86/x86.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace banyan::simd {

namespace {

// Whether the processor has AMX tiles for bf16 and bytes, and Linux lets this process use them.
// Permission must be requested once per process.
bool has_amx() {
  constexpr int kRequestPermission = 0x1023, kTileData = 18;
  constexpr unsigned kBf16 = 1u << 22, kTile = 1u << 24, kInt8 = 1u << 25;
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) return false;
  if ((edx & (kBf16 | kTile | kInt8)) != (kBf16 | kTile | kInt8)) return false;
  return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

KernelTable avx512_vnni() {
  KernelTable table = kAvx512;
  table.name = "avx512_vnni";
  table.gemm_int8 = kAvx512VnniProducts.int8;
  table.gemm_int4 = kAvx512VnniProducts.int4;
  table.gemm_uint4 = kAvx512VnniProducts.uint4;
  table.gemm_mxfp4 = kAvx512VnniProducts.mxfp4;
  table.gemm_q2 = kAvx512VnniProducts.q2;
  table.gemm_q3 = kAvx512VnniProducts.q3;
  table.gemm_q4 = kAvx512VnniProducts.q4;
  table.gemm_q5 = kAvx512VnniProducts.q5;
  table.gemm_q6 = kAvx512VnniProducts.q6;
  table.gemm_iq4 = kAvx512VnniProducts.iq4;
  return table;
}

KernelTable avx512_bf16() {
  KernelTable table = avx512_vnni();
  table.name = "avx512_bf16";
  table.gemm_bf16 = kAvx512Bf16Products.bf16;
  table.gemm_fp8 = kAvx512Bf16Products.fp8;
  table.attention = kAvx512Bf16Products.attention;
  table.latent_attention = kAvx512Bf16Products.latent_attention;
  table.index_scores = kAvx512Bf16Products.index_scores;
  return table;
}

}  // namespace

KernelTable with_tiles(const char* name, const TileProducts& products) {
  KernelTable table = avx512_bf16();
  table.name = name;
  table.gemm_bf16 = products.bf16;
  table.gemm_int8 = products.int8;
  table.gemm_int4 = products.int4;
  table.gemm_uint4 = products.uint4;
  table.gemm_mxfp4 = products.mxfp4;
  table.gemm_fp8 = products.fp8;
  table.attention = products.attention;
  table.latent_attention = products.latent_attention;
  return table;
}

// The compiler's runtime library reads cpuid, and xgetbv for the register state that the operating
// system saves.
std::vector<MeasuredTable> runnable_tables() {
  static const KernelTable vnni_table = avx512_vnni(), bf16_table = avx512_bf16();
  static const KernelTable amx_table = with_tiles("amx", kAmxProducts);
  std::vector<MeasuredTable> tables;
  bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
              __builtin_cpu_supports("f16c");
  bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  bool vnni = avx512 && __builtin_cpu_supports("avx512vnni");
  bool bf16 = vnni && __builtin_cpu_supports("avx512bf16");
  if (avx2) tables.push_back({&kAvx2, &kAvx2Limits});
  if (avx512) tables.push_back({&kAvx512, &kAvx512Limits});
  if (vnni) tables.push_back({&vnni_table, &kAvx512VnniLimits});
  if (bf16) tables.push_back({&bf16_table, &kAvx512Bf16Limits});
  if (bf16 && has_amx()) tables.push_back({&amx_table, &kAmxLimits});
  return tables;
}

}  // namespace banyan::simd
