#include "kernels/x86/x86.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

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

// The instruction sets that tables are compiled for. Each has all of those before it.
enum Level : int { kNone, kAvx2Level, kAvx512Level, kVnniLevel, kBf16Level, kAmxLevel };
constexpr const char* kNames[] = {"", "avx2", "avx512", "avx512_vnni", "avx512_bf16", "amx"};

// cmake/instructions.cmake: a program for the machine that compiled it lacks the later ones.
constexpr Level kCompiled{BANYAN_X86_LEVEL};

// The last level that this processor and operating system run. The compiler's runtime library reads
// cpuid, and xgetbv for the register state that the operating system saves.
Level processor_level() {
  auto avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
              __builtin_cpu_supports("f16c");
  auto avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (!avx2) return kNone;
  if (!avx512) return kAvx2Level;
  if (!__builtin_cpu_supports("avx512vnni")) return kAvx512Level;
  if (!__builtin_cpu_supports("avx512bf16")) return kVnniLevel;
  return has_amx() ? kAmxLevel : kBf16Level;
}

KernelTable with_bytes(KernelTable table, const ByteProducts& products) {
  table.name = "avx512_vnni";
  table.gemm_int8 = products.int8;
  table.gemm_int4 = products.int4;
  table.gemm_uint4 = products.uint4;
  table.gemm_mxfp4 = products.mxfp4;
  table.gemm_q2 = products.q2;
  table.gemm_q3 = products.q3;
  table.gemm_q4 = products.q4;
  table.gemm_q5 = products.q5;
  table.gemm_q6 = products.q6;
  table.gemm_iq4 = products.iq4;
  return table;
}

KernelTable with_pairs(KernelTable table, const PairProducts& products) {
  table.name = "avx512_bf16";
  table.gemm_bf16 = products.bf16;
  table.gemm_fp8 = products.fp8;
  table.attention = products.attention;
  table.latent_attention = products.latent_attention;
  table.index_scores = products.index_scores;
  return table;
}

// Refers to nothing that was not compiled.
std::vector<MeasuredTable> compiled_tables() {
  std::vector<MeasuredTable> tables = {{&kAvx2, &kAvx2Limits}};
  if constexpr (kCompiled >= kAvx512Level) {
    tables.push_back({&kAvx512, &kAvx512Limits});
  }
  if constexpr (kCompiled >= kVnniLevel) {
    static const KernelTable table = with_bytes(kAvx512, kAvx512VnniProducts);
    tables.push_back({&table, &kAvx512VnniLimits});
  }
  if constexpr (kCompiled >= kBf16Level) {
    static const KernelTable table = with_pairs(*tables.back().table, kAvx512Bf16Products);
    tables.push_back({&table, &kAvx512Bf16Limits});
  }
  if constexpr (kCompiled >= kAmxLevel) {
    static const KernelTable table = with_tiles(*tables.back().table, "amx", kAmxProducts);
    tables.push_back({&table, &kAmxLimits});
  }
  return tables;
}

}  // namespace

KernelTable with_tiles(const KernelTable& avx512_bf16, const char* name,
                       const TileProducts& products) {
  KernelTable table = avx512_bf16;
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

std::vector<MeasuredTable> runnable_tables() {
  std::vector<MeasuredTable> tables = compiled_tables();
  tables.resize(std::min<size_t>(tables.size(), processor_level()));
  return tables;
}

const char* table_left_out() {
  Level level = processor_level();
  return level > kCompiled ? kNames[level] : nullptr;
}

}  // namespace banyan::simd
