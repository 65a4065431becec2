// The portable table: every kernel in scalar C++ with f32 accumulation, written for clarity rather
// than speed. Other tables are tested against it (tests/differential), and it is tested against
// Hugging Face transformers (tests/golden).
#pragma once

#include "kernels/kernel_table.h"
#include "kernels/limits.h"

namespace banyan::portable {

// Stands for the vector class in templates that take one.
struct Portable {};

// GemmKernel::workspace_bytes of this table, which needs none.
size_t no_workspace(int64_t rows, int64_t segments, int64_t k, int64_t group);

// Unquantised weights (gemm.cpp), packed row-major like the source.
GemmKernel gemm_f32();
GemmKernel gemm_bf16();
GemmKernel gemm_f16();
// Rounds x[0, group) to codes; returns their scale (kernels/gemm.h).
float quantise_group(const float* x, int64_t group, int8_t* codes);
// Quantised weights (quantised_gemm.cpp).
GemmKernel gemm_int8();
GemmKernel gemm_int4();
GemmKernel gemm_uint4();
GemmKernel gemm_mxfp4();
GemmKernel gemm_fp8();
// The formats of GGUF (block_gemm.cpp).
GemmKernel gemm_q2();
GemmKernel gemm_q3();
GemmKernel gemm_q4();
GemmKernel gemm_q5();
GemmKernel gemm_q6();
GemmKernel gemm_iq4();

void rms_norm(const RmsNormArgs& args);
void rope_angles(const RopeAnglesArgs& args);
void rope(const RopeArgs& args);
void silu_mul(const SiluMulArgs& args);
void scale(const ScaleArgs& args);
float row_scale(const ScaleArgs& args, int64_t row);  // for every CPU table
void gate_mul(const GateMulArgs& args);
void add(const AddArgs& args);
void logit_stats(const LogitStatsArgs& args);
void route(const RouteArgs& args);
void sort_experts(const SortExpertsArgs& args);
void combine_experts(const CombineExpertsArgs& args);
void copy_rows(const CopyRowsArgs& args);
void add_rows(const AddRowsArgs& args);
void copy_units(const CopyUnitsArgs& args);
void page_write(const PageWriteArgs& args);
void page_read(const PageReadArgs& args);
void key_sums(const KeySumsArgs& args);
void block_scores(const BlockScoresArgs& args);
void block_maxima(const BlockMaximaArgs& args);
void pool_keys(const PoolKeysArgs& args);
void pooled_attention(const PooledAttentionArgs& args);
void select_keys(const SelectKeysArgs& args);
void index_scores(const IndexScoresArgs& args);
void hadamard(const HadamardArgs& args);
void layer_norm(const LayerNormArgs& args);
void attention(const AttentionArgs& args);
void latent_attention(const LatentAttentionArgs& args);
void linear_attention(const LinearAttentionArgs& args);
void delta_attention(const DeltaAttentionArgs& args);
void delta_gates(const DeltaGatesArgs& args);
void state_space(const StateSpaceArgs& args);
void state_space_gates(const StateSpaceGatesArgs& args);
void short_conv(const ShortConvArgs& args);
void draw(const DrawArgs& args);
void resolve_tokens(const ResolveTokensArgs& args);
void follow_drafts(const FollowDraftsArgs& args);

const KernelTable& table();
const LimitProbes& limit_probes();

}  // namespace banyan::portable
