#include "kernels/traced/traced.h"

#include <algorithm>
#include <cstddef>
#include <type_traits>

namespace banyan {
namespace {

thread_local const TracedKernels* entered = nullptr;

// A string literal as a template argument.
template <size_t N>
struct Text {
  consteval Text(const char (&literal)[N]) { std::copy_n(literal, N, text); }
  char text[N];
};

template <class Args>
int64_t rows_of(const Args& args) {
  if constexpr (requires { args.product.x_rows; }) return args.product.x_rows;
  if constexpr (requires { args.x_rows; }) return args.x_rows;
  if constexpr (requires { args.rows; }) return args.rows;
  return -1;
}

void note_shape(const GemmArgs& args, TraceEvent& event) {
  event.n = args.n;
  event.k = args.k;
}

template <class Args, class Kernel>
void note(const char* name, const char* detail, const Args& args, Kernel kernel) {
  TraceEvent event{.category = "kernel", .name = name, .detail = detail, .rows = rows_of(args)};
  if constexpr (std::is_same_v<Args, GemmArgs>) note_shape(args, event);
  if constexpr (std::is_same_v<Args, GatedGemmArgs>) note_shape(args.product, event);
  event.begin_ns = trace_clock_ns();
  kernel(args);
  event.end_ns = trace_clock_ns();
  entered->log().add(event);
}

// The kernel in `slot` of the traced table.
template <Text name, auto slot>
struct Traced;
template <Text name, class Args, void (*KernelTable::*slot)(const Args&)>
struct Traced<name, slot> {
  static void run(const Args& args) { note(name.text, "", args, entered->inner().*slot); }
};

template <Text format, GemmKernel KernelTable::* slot>
GemmKernel traced_gemm(const KernelTable& inner) {
  GemmKernel kernel = inner.*slot;
  if (!kernel.exists()) return kernel;
  kernel.gather = [](const GatherArgs& args) {
    note("gather", format.text, args, (entered->inner().*slot).gather);
  };
  kernel.run = [](const GemmArgs& args) {
    note("gemm", format.text, args, (entered->inner().*slot).run);
  };
  if (kernel.gates == nullptr) return kernel;
  kernel.run_gated = [](const GatedGemmArgs& args) {
    note("gated_gemm", format.text, args, (entered->inner().*slot).run_gated);
  };
  return kernel;
}

KernelTable traced(const KernelTable& inner) {
  using T = KernelTable;
  return {.name = inner.name,
          .device = inner.device,
          .gemm_f32 = traced_gemm<"f32", &T::gemm_f32>(inner),
          .gemm_bf16 = traced_gemm<"bf16", &T::gemm_bf16>(inner),
          .gemm_f16 = traced_gemm<"f16", &T::gemm_f16>(inner),
          .gemm_int8 = traced_gemm<"int8", &T::gemm_int8>(inner),
          .gemm_int4 = traced_gemm<"int4", &T::gemm_int4>(inner),
          .gemm_uint4 = traced_gemm<"uint4", &T::gemm_uint4>(inner),
          .gemm_mxfp4 = traced_gemm<"mxfp4", &T::gemm_mxfp4>(inner),
          .gemm_fp8 = traced_gemm<"fp8", &T::gemm_fp8>(inner),
          .gemm_q2 = traced_gemm<"q2", &T::gemm_q2>(inner),
          .gemm_q3 = traced_gemm<"q3", &T::gemm_q3>(inner),
          .gemm_q4 = traced_gemm<"q4", &T::gemm_q4>(inner),
          .gemm_q5 = traced_gemm<"q5", &T::gemm_q5>(inner),
          .gemm_q6 = traced_gemm<"q6", &T::gemm_q6>(inner),
          .gemm_iq4 = traced_gemm<"iq4", &T::gemm_iq4>(inner),
          .rms_norm = Traced<"rms_norm", &T::rms_norm>::run,
          .rope_angles = Traced<"rope_angles", &T::rope_angles>::run,
          .rope = Traced<"rope", &T::rope>::run,
          .silu_mul = Traced<"silu_mul", &T::silu_mul>::run,
          .scale = Traced<"scale", &T::scale>::run,
          .gate_mul = Traced<"gate_mul", &T::gate_mul>::run,
          .add = Traced<"add", &T::add>::run,
          .logit_stats = Traced<"logit_stats", &T::logit_stats>::run,
          .route = Traced<"route", &T::route>::run,
          .sort_experts = Traced<"sort_experts", &T::sort_experts>::run,
          .combine_experts = Traced<"combine_experts", &T::combine_experts>::run,
          .copy_rows = Traced<"copy_rows", &T::copy_rows>::run,
          .add_rows = Traced<"add_rows", &T::add_rows>::run,
          .copy_units = Traced<"copy_units", &T::copy_units>::run,
          .page_write = Traced<"page_write", &T::page_write>::run,
          .place_heads = Traced<"place_heads", &T::place_heads>::run,
          .page_read = Traced<"page_read", &T::page_read>::run,
          .key_sums = Traced<"key_sums", &T::key_sums>::run,
          .block_scores = Traced<"block_scores", &T::block_scores>::run,
          .block_maxima = Traced<"block_maxima", &T::block_maxima>::run,
          .select_keys = Traced<"select_keys", &T::select_keys>::run,
          .index_scores = Traced<"index_scores", &T::index_scores>::run,
          .hadamard = Traced<"hadamard", &T::hadamard>::run,
          .layer_norm = Traced<"layer_norm", &T::layer_norm>::run,
          .attention = Traced<"attention", &T::attention>::run,
          .latent_attention = Traced<"latent_attention", &T::latent_attention>::run,
          .linear_attention = Traced<"linear_attention", &T::linear_attention>::run,
          .delta_attention = Traced<"delta_attention", &T::delta_attention>::run,
          .delta_gates = Traced<"delta_gates", &T::delta_gates>::run,
          .state_space = Traced<"state_space", &T::state_space>::run,
          .state_space_gates = Traced<"state_space_gates", &T::state_space_gates>::run,
          .short_conv = Traced<"short_conv", &T::short_conv>::run,
          .draw = Traced<"draw", &T::draw>::run,
          .resolve_tokens = Traced<"resolve_tokens", &T::resolve_tokens>::run,
          .follow_drafts = Traced<"follow_drafts", &T::follow_drafts>::run,
          .pool_keys = Traced<"pool_keys", &T::pool_keys>::run,
          .pooled_attention = Traced<"pooled_attention", &T::pooled_attention>::run};
}

}  // namespace

TracedKernels::TracedKernels(const KernelTable& inner, TraceLog& log)
    : inner_(inner), log_(log), table_(traced(inner)) {}

const KernelTable& TracedKernels::enter() const {
  entered = this;
  return table_;
}

}  // namespace banyan
