// The porting contract: every computation of a forward pass as a function pointer and a plain
// argument struct. Kernels see raw pointers; shapes were checked in ops. A new instruction set or
// device fills the same table.
//
// Rules for every table:
// - kernels/portable is the definition; other tables agree with it within a stated bound.
// - A row's result depends on that row's data and absolute position alone: the same arithmetic
//   (order over k, operand rounding) for 1 row and for 512, for any number of threads and any
//   grouping of rows into spans.
// - A kernel returns when its work is done (CPU) or on launch.queue (device). It keeps a copy of
// its
//   argument struct if it needs one, and of nothing that the struct points to.
// - Every pointer in an argument struct is to memory of the table's device, and stays valid until
//   the queue has passed the call: inputs of the batch, weights, activations and states alike. Two
//   exceptions are the host's: `launch.threads`, and all of PackArgs, since matrices are packed in
//   host memory and uploaded (see Staging).
// - Activations are f32. Strides are in elements; the last axis is dense.
#pragma once

#include <cstddef>
#include <cstdint>

#include "banyan/token.h"
#include "kernels/gemm.h"
#include "tensor/device.h"
#include "tensor/dtype.h"

namespace banyan {

// ---- Row-wise --------------------------------------------------------------------------------

// y = x * rsqrt(mean(x^2) + eps) * weight, over the last axis of [rows, groups, dim].
struct RmsNormArgs {
  Launch launch = {};
  const float* x = nullptr;
  int64_t x_row_stride = 0;         // groups lie dense inside a row
  const float* weight = nullptr;    // [dim], or [groups, dim]
  int64_t weight_group_stride = 0;  // 0: the groups share one weight; dim: each has its own
  float* y = nullptr;
  int64_t y_row_stride = 0;
  int64_t rows = 0, groups = 1, dim = 0;
  float eps = 0;
};

enum class RopeLayout : uint8_t {
  kHalves,       // pairs (i, i + rotary/2): every Hugging Face checkpoint of the Llama line
  kInterleaved,  // pairs (2i, 2i + 1): DeepSeek's MLA
};

// cos and sin of positions[r] * inverse_frequency[i], both times `scale` (YaRN's attention factor).
struct RopeAnglesArgs {
  Launch launch = {};
  const int32_t* positions = nullptr;        // [rows]
  const float* inverse_frequency = nullptr;  // [pairs]
  float scale = 1;
  float* cos = nullptr;  // [rows, pairs]
  float* sin = nullptr;  // [rows, pairs]
  int64_t rows = 0, pairs = 0;
};

// Rotates the first 2 * pairs elements of each head and copies the rest. y may be x.
struct RopeArgs {
  Launch launch = {};
  const float* x = nullptr;  // [rows, heads, head_dim]
  int64_t x_row_stride = 0, x_head_stride = 0;
  const float* cos = nullptr;  // [rows, pairs]
  const float* sin = nullptr;
  float* y = nullptr;
  int64_t y_row_stride = 0, y_head_stride = 0;
  int64_t rows = 0, heads = 0, head_dim = 0, pairs = 0;
  RopeLayout layout = RopeLayout::kHalves;
};

// Constants of the activations below: sqrt(2 / pi), and those of their papers.
inline constexpr float kGeluFactor = 0.7978845608028654f;
inline constexpr float kGeluCube = 0.044715f;
inline constexpr float kSwigluAlpha = 1.702f;

// What becomes of gate g and up u in a gated feed-forward block.
enum class GluForm : uint8_t {
  kSilu,      // silu(g) u; with a limit, min(silu(g), limit) clamp(u, -limit, limit)
  kGeluTanh,  // gelu(g) u, by the approximation with tanh
  kSwigluOai  // g sigmoid(1.702 g) (u + 1) with g = min(g, limit), u = clamp(u, -limit, limit)
};

// y[r, i] = gate[r, i] and up[r, i] in one of these forms.
struct SiluMulArgs {
  Launch launch = {};
  const float* gate = nullptr;
  const float* up = nullptr;
  int64_t x_row_stride = 0;  // of gate and of up
  float* y = nullptr;        // [rows, dim] dense
  int64_t rows = 0, dim = 0;
  float limit = 0;  // 0: none
  GluForm form = GluForm::kSilu;
};

// y[r, i] = cap(factor(r) * scale * x[r, i]), where cap(z) is z, or soft_cap * tanh(z / soft_cap),
// and factor(r) is 1, or with `positions` 1 + position_beta * ln(1 + floor((position(r) +
// position_offset) / position_period)): what Llama 4 and its like do to queries.
struct ScaleArgs {
  Launch launch = {};
  const float* x = nullptr;
  int64_t x_row_stride = 0;
  float* y = nullptr;  // [rows, dim] dense; may be x where that is dense
  int64_t rows = 0, dim = 0;
  float scale = 1;
  float soft_cap = 0;                  // 0: none
  const int32_t* positions = nullptr;  // [rows] or null
  float position_beta = 0, position_period = 1, position_offset = 0;
};

enum class GateFunction : uint8_t { kSigmoid, kSilu, kRelu, kIdentity };

// y[r, i] = f(gate[r, i / gate_columns]) * x[r, i]. With a gate_row_stride of 0 all rows have the
// same gates; relu of x itself as the gate is its square where it is positive.
struct GateMulArgs {
  Launch launch = {};
  const float* gate = nullptr;
  const float* x = nullptr;
  int64_t gate_row_stride = 0, x_row_stride = 0;
  float* y = nullptr;  // [rows, dim] dense
  int64_t rows = 0, dim = 0;
  int64_t gate_columns = 1;  // that share a gate
  GateFunction function = GateFunction::kSigmoid;
};

// y = a + b, dense.
struct AddArgs {
  Launch launch = {};
  const float* a = nullptr;
  const float* b = nullptr;
  float* y = nullptr;
  int64_t count = 0;
};

// Of each row of logits: the largest value, its lowest index, and log(sum(exp(x))). A NaN anywhere
// in a row makes its log_sum_exp NaN; max and index are then those of the numbers, -inf and 0 if
// there is none.
struct LogitStatsArgs {
  Launch launch = {};
  const float* x = nullptr;  // [rows, dim]
  int64_t x_row_stride = 0;
  int64_t rows = 0, dim = 0;
  float* max = nullptr;          // [rows]
  int32_t* argmax = nullptr;     // [rows]
  float* log_sum_exp = nullptr;  // [rows]
};

// ---- Mixtures of experts ---------------------------------------------------------------------

inline constexpr int64_t kExpertsMax = 4096;

enum class RouterScore : uint8_t { kSoftmax, kSigmoid };  // softmax over all experts
enum class GroupScore : uint8_t { kMax, kTopTwoSum };     // of the group's choice scores

// Which experts a row goes to and with what weight. A row's scores are the softmax or sigmoid of
// its logits, and its choice scores are those plus `bias`. Of `groups` equal runs of experts the
// top_groups best stay, and of their experts the top_k best by choice score are chosen, best first;
// among equals the lowest index is better, and a choice score that is no number counts as
// -infinity. Their weights are the scores, without bias, over their sum if `normalise`, times
// `scale`.
struct RouteArgs {
  Launch launch = {};
  const float* logits = nullptr;  // [rows, experts]
  int64_t logits_row_stride = 0;
  const float* bias = nullptr;               // [experts] or null
  int32_t* ids = nullptr;                    // [rows, top_k]
  float* weights = nullptr;                  // [rows, top_k]
  int64_t rows = 0, experts = 0, top_k = 0;  // experts <= kExpertsMax
  int64_t groups = 1, top_groups = 1;        // top_k experts fit into top_groups groups
  RouterScore score = RouterScore::kSoftmax;
  GroupScore group_score = GroupScore::kTopTwoSum;
  bool normalise = false;
  float scale = 1;
};

// y[r] = sum over j, ascending, of weights[r, j] * e(r, j), then + shared[r] if there is one, where
// e(r, j) is row places[r, j] of expert_rows, or x[r] where that is negative.
struct CombineExpertsArgs {
  Launch launch = {};
  const float* x = nullptr;  // [rows, dim]
  int64_t x_row_stride = 0;
  const float* expert_rows = nullptr;  // [any, dim] dense
  const int32_t* places = nullptr;     // [rows, top_k]
  const float* weights = nullptr;      // [rows, top_k]
  const float* shared = nullptr;       // [rows, dim] dense, or null
  float* y = nullptr;                  // [rows, dim] dense
  int64_t rows = 0, dim = 0, top_k = 0;
};

// The choices of all rows by expert. A choice of one of the first `experts` is an assignment; those
// are sorted by expert, and those of an expert stay in the order of the choices. An id from
// `experts` on computes nothing.
struct SortExpertsArgs {
  Launch launch = {};
  const int32_t* ids = nullptr;  // [rows, top_k]
  int64_t rows = 0, top_k = 0, experts = 0;
  int32_t* begins = nullptr;   // [experts + 1] the first assignment of each expert
  int32_t* places = nullptr;   // [rows, top_k] the number of the assignment, -1: none
  int32_t* sources = nullptr;  // [begins[experts]] the row; room for rows * top_k
  int64_t* counts = nullptr;   // of every id, counted up; or null
};

// ---- Copies ----------------------------------------------------------------------------------

// y[i] = x[index[i]], or x[i] without an index. x and y do not overlap.
struct CopyRowsArgs {
  Launch launch = {};
  const float* x = nullptr;  // [any, dim]
  int64_t x_row_stride = 0;
  const int32_t* index = nullptr;  // [rows] or null
  float* y = nullptr;              // [rows, dim]
  int64_t y_row_stride = 0;
  int64_t rows = 0, dim = 0;
};

// A copy between two units of a class (cache/state_classes.h): of a page the rows of its first
// `tokens` positions, whole rows only; of a slot all of it.
struct UnitCopy {
  int32_t unit_class = 0;
  int32_t from = 0;
  int32_t to = 0;
  int32_t tokens = 0;  // pages only
  bool operator==(const UnitCopy&) const = default;
};

// The memory of one state. A unit of it is `parts` parts of `part_bytes`, and a part is rows of
// `row_bytes`: the heads of a page, each with its rows, or all of a slot.
struct UnitPool {
  std::byte* data = nullptr;
  int32_t unit_class = 0;
  int32_t tokens_per_row = 0;  // 0: of slots
  int64_t parts = 1;
  int64_t part_bytes = 0, row_bytes = 0;
};

// Makes the copies, in their order, in every pool of their class.
struct CopyUnitsArgs {
  Launch launch = {};
  const UnitPool* pools = nullptr;
  int64_t pool_count = 0;
  const UnitCopy* copies = nullptr;
  int64_t copy_count = 0;
};

// ---- Attention over pages --------------------------------------------------------------------

// A run of consecutive positions of one sequence in the batch. Position p of the sequence lies in
// page page_table[page_begin + p / page_size], at row p % page_size.
struct SpanArgs {
  int32_t row_begin = 0;  // first row in the batch
  int32_t row_count = 0;
  int32_t first_position = 0;  // absolute position of the first row
  int32_t page_begin = 0;      // where the sequence's pages start in the page table
};

// Pool layout for every paged state: [pages, heads, page_size] rows of `width` columns, so that one
// head's keys of one page are contiguous. Rows are of F32, BF16 or F16, or quantised to I8 or
// F8_E4M3: kernels/state_rows.h.
struct PageWriteArgs {
  Launch launch = {};
  const float* x = nullptr;  // [rows, heads, width], heads dense inside a row
  int64_t x_row_stride = 0;
  void* pool = nullptr;
  DType pool_dtype = DType::kF32;
  int64_t heads = 0, width = 0, page_size = 0;
  int64_t split = 0;  // of quantised rows
  const SpanArgs* spans = nullptr;
  int64_t span_count = 0;
  const int32_t* page_table = nullptr;
};

// The way back: row i of each span as f32 again.
struct PageReadArgs {
  Launch launch = {};
  const void* pool = nullptr;
  DType pool_dtype = DType::kF32;
  float* x = nullptr;  // [rows, heads, width], heads dense inside a row
  int64_t x_row_stride = 0;
  int64_t heads = 0, width = 0, page_size = 0;
  int64_t split = 0;  // of quantised rows
  const SpanArgs* spans = nullptr;
  int64_t span_count = 0;
  const int32_t* page_table = nullptr;
};

// The keys [begin, end) of a span that a launch looks at; begin is a multiple of kAttentionBlock.
struct KeyBlock {
  int32_t begin = 0, end = 0;
};
inline constexpr int64_t kAttentionBlock = 512;

// out[r, h] = sum_j w_j v[j, h / G] / (sum_j w_j + exp(sinks[h])) with w_j = exp(score_j) and
// score_j = scale * q[r, h] . k[j, h / G], over the visible keys j <= position(r), and
// j > position(r) - window when window > 0; G = q_heads / kv_heads. Without sinks their term is
// missing; with soft_cap > 0 a score x becomes soft_cap * tanh(x / soft_cap). The keys and values
// of the span itself are already in the pools.
//
// Keys are cut at absolute multiples of a tile: spans and page sizes change no bit. Tables that
// have products of bf16 pairs round q and w to bf16 over a bf16 pool if head_dim and value_dim are
// multiples of 32. Rows of a quantised pool have one scale each, which x86 tables apply to the
// score and to the weight in place of the row.
//
// With `blocks`, and then without a window, launches take the keys in turns, each span's in
// ascending order and without a gap. Until the block that a row itself lies in, out, max and weight
// carry what the launches have summed; that block's launch is the row's last. The bits are those of
// one launch over all keys.
struct AttentionArgs {
  Launch launch = {};
  const float* q = nullptr;  // [rows, q_heads, head_dim], heads dense inside a row
  int64_t q_row_stride = 0;
  const void* k_pool = nullptr;
  const void* v_pool = nullptr;
  DType pool_dtype = DType::kF32;
  float* out = nullptr;  // [rows, q_heads, value_dim] dense
  int64_t q_heads = 0, kv_heads = 0;
  int64_t head_dim = 0, value_dim = 0;  // of queries and keys; of values
  int64_t page_size = 0;
  float scale = 1;
  int64_t window = 0;            // 0: all earlier keys
  float soft_cap = 0;            // 0: none
  const float* sinks = nullptr;  // [q_heads] or null
  const SpanArgs* spans = nullptr;
  int64_t span_count = 0;
  const int32_t* page_table = nullptr;
  const KeyBlock* blocks = nullptr;  // [span_count], or null: all keys at once
  float* max = nullptr;              // [rows, q_heads] with blocks: of the scores so far, and ...
  float* weight = nullptr;           // ... the sum of exp(score - max)
};

// Attention whose heads all look at the same key of a position, its latent, and take the first
// `rank` columns of it for the value:
//   out[r, h] = sum over j <= position(r) of softmax_j(scale * q[r, h] . latent_j) latent_j[:rank].
// The latents of the span itself are already in the pool. The key axis is cut at absolute multiples
// of a fixed tile, as in AttentionArgs.
struct LatentAttentionArgs {
  Launch launch = {};
  const float* q = nullptr;  // [rows, heads, width], heads dense inside a row
  int64_t q_row_stride = 0;
  const void* pool = nullptr;  // [pages, 1, page_size, width]; quantised rows are split at `rank`
  DType pool_dtype = DType::kF32;
  float* out = nullptr;  // [rows, heads, rank] dense
  int64_t heads = 0, width = 0, rank = 0, page_size = 0;
  float scale = 1;
  const SpanArgs* spans = nullptr;
  int64_t span_count = 0;
  const int32_t* page_table = nullptr;
};

// ---- Recurrent states in slots ---------------------------------------------------------------

// The state of span `span` as it is after `position`, which lies in the span and does not cut a
// chunk of the prompt, goes to slot `slot` too.
struct Capture {
  int32_t span = 0;
  int32_t position = 0;
  int32_t slot = 0;
};

// The spans of a step over states in slots. Each span changes the state in its slot in place, and
// takes it as zero when it starts at position 0. No other span and no capture of the step has the
// same slot.
//
// Recurrences have two forms that differ in bits, and a position takes the same one in whatever
// span it runs: below the sequence's prompt_tokens the prefill form, computed by chunks that are
// cut at absolute multiples of `chunk`, and from there on the decode form, row by row. The state
// after a prompt whose last chunk is not whole is the prefill form's too. So a span that starts
// below prompt_tokens starts at a multiple of `chunk`, and one that ends below it ends at one.
struct SlotSpans {
  const SpanArgs* spans = nullptr;
  int64_t count = 0;
  const int32_t* slots = nullptr;          // [count]
  const int32_t* prompt_tokens = nullptr;  // [count]
  const Capture* captures = nullptr;
  int64_t capture_count = 0;
};

// Linear attention whose state decays by a constant of the head (lightning attention):
//   S_t = exp(log_decay) S_{t-1} + k_t^T v_t,   o_t = scale q_t S_t.
struct LinearAttentionArgs {
  Launch launch = {};
  const float* q = nullptr;  // [rows, heads, key_dim], heads dense inside a row
  const float* k = nullptr;  // [rows, heads, key_dim]
  const float* v = nullptr;  // [rows, heads, value_dim]
  int64_t q_row_stride = 0, k_row_stride = 0, v_row_stride = 0;
  const float* log_decay = nullptr;  // [heads], not above 0
  float* states = nullptr;           // [slots, heads, key_dim, value_dim]
  float* out = nullptr;              // [rows, heads, value_dim] dense
  int64_t heads = 0, key_dim = 0, value_dim = 0;
  int64_t group = 1;  // heads that share a query and a key: q and k have heads / group
  int64_t chunk = 1;
  float scale = 1;
  SlotSpans spans = {};
};

// A state space that is selective by its gates (Mamba 2): linear attention whose decay, and what it
// adds, are numbers of the row and head, with a way past the state for the values:
//   S_t = decay_t S_{t-1} + step_t k_t^T v_t,   o_t = q_t S_t + skip v_t.
// In Mamba's words q is C, k is B, v is x, step is dt and skip is D.
struct StateSpaceArgs {
  Launch launch = {};
  const float* q = nullptr;  // [rows, heads / group, key_dim], heads dense inside a row
  const float* k = nullptr;  // [rows, heads / group, key_dim]
  const float* v = nullptr;  // [rows, heads, value_dim]
  int64_t q_row_stride = 0, k_row_stride = 0, v_row_stride = 0;
  const float* decay = nullptr;  // [rows, heads] dense, in [0, 1]
  const float* step = nullptr;   // [rows, heads] dense
  const float* skip = nullptr;   // [heads]
  float* states = nullptr;       // [slots, heads, key_dim, value_dim]
  float* out = nullptr;          // [rows, heads, value_dim] dense
  int64_t heads = 0, key_dim = 0, value_dim = 0;
  int64_t group = 1;
  int64_t chunk = 1;
  SlotSpans spans = {};
};

// What a state space is gated by:
//   step = min(max(softplus(step_logits[r, h] + bias[h]), step_min), step_max);
//   decay = exp(-exp(log_rate[h]) step).
struct StateSpaceGatesArgs {
  Launch launch = {};
  const float* step_logits = nullptr;  // [rows, heads]
  int64_t logits_row_stride = 0;
  const float* bias = nullptr;      // [heads]
  const float* log_rate = nullptr;  // [heads]
  float step_min = 0, step_max = 0;
  float* step = nullptr;   // [rows, heads] dense
  float* decay = nullptr;  // [rows, heads] dense
  int64_t rows = 0, heads = 0;
};

// The delta rule with a decay of each key channel (Kimi Delta Attention), or of each head (Gated
// DeltaNet). With D_t = Diag(decay_t),
//   S_t = D_t S_{t-1} + beta_t k_t^T (v_t - k_t D_t S_{t-1}),   o_t = scale q_t S_t.
// Keys of length 1 at most and beta in [0, 1] keep the state from growing.
struct DeltaAttentionArgs {
  Launch launch = {};
  const float* q = nullptr;  // [rows, heads, key_dim], heads dense inside a row
  const float* k = nullptr;  // [rows, heads, key_dim]
  const float* v = nullptr;  // [rows, heads, value_dim]
  int64_t q_row_stride = 0, k_row_stride = 0, v_row_stride = 0;
  const float* decay = nullptr;  // [rows, heads, decay_dim] dense, in [0, 1]
  const float* beta = nullptr;   // [rows, heads] dense
  float* states = nullptr;       // [slots, heads, key_dim, value_dim]
  float* out = nullptr;          // [rows, heads, value_dim] dense
  int64_t heads = 0, key_dim = 0, value_dim = 0;
  int64_t decay_dim = 0;  // key_dim, or 1: the channels of a head decay alike
  int64_t group = 1;      // heads that share a query and a key: q and k have heads / group
  int64_t chunk = 1;
  float scale = 1;
  SlotSpans spans = {};
};

// What the delta rule is gated by, where z = decay_logits[r, h, c] + bias[h, c] and
// rate = exp(log_rate[h]):
//   decay = exp(-rate softplus(z)), or exp(lower_bound sigmoid(rate z)) if lower_bound is below 0;
//   beta  = sigmoid(beta_logits[r, h]).
struct DeltaGatesArgs {
  Launch launch = {};
  const float* decay_logits = nullptr;  // [rows, heads, key_dim], heads dense inside a row
  const float* beta_logits = nullptr;   // [rows, heads], dense inside a row
  int64_t decay_row_stride = 0, beta_row_stride = 0;
  const float* log_rate = nullptr;  // [heads]
  const float* bias = nullptr;      // [heads, key_dim]
  float lower_bound = 0;
  float* decay = nullptr;  // [rows, heads, key_dim] dense
  float* beta = nullptr;   // [rows, heads] dense
  int64_t rows = 0, heads = 0, key_dim = 0;
};

// A causal convolution along each channel, then f, which is silu or nothing:
//   y[t, c] = f(bias[c] + sum_j weight[j, c] x[t - taps + 1 + j, c]).
// The state is the last taps - 1 inputs, oldest first. It has one form.
struct ShortConvArgs {
  Launch launch = {};
  const float* x = nullptr;  // [rows, channels]
  int64_t x_row_stride = 0;
  const float* weight = nullptr;  // [taps, channels]
  const float* bias = nullptr;    // [channels] or null
  float* states = nullptr;        // [slots, taps - 1, channels]
  float* y = nullptr;             // [rows, channels] dense
  bool silu = true;
  int64_t channels = 0, taps = 0;
  SlotSpans spans = {};
};

// ---- Drawing tokens --------------------------------------------------------------------------

// Which random words a row draws with: kernels/race.h.
struct DrawNoise {
  uint64_t seed = 0;
  int64_t position = 0;  // absolute, of the token to draw
  uint32_t sample_index = 0;
};

// A token that a sequence has seen, and how often in its output: 0 if in the prompt alone.
struct TokenCount {
  TokenId token = 0;
  int32_t in_output = 0;
};

struct TokenBias {
  TokenId token = 0;
  float bias = 0;
};

// Entries of an array that all rows of a launch share.
struct ArrayPart {
  int32_t begin = 0;
  int32_t count = 0;
};

// What one row of logits is asked for; the fields of SamplingParams mean what they do there.
struct DrawRow {
  DrawNoise noise = {};
  float temperature = 1, top_p = 1, min_p = 0, typical_p = 1;
  float xtc_probability = 0, xtc_threshold = 0.1f;
  int32_t top_k = 0;
  float frequency_penalty = 0, presence_penalty = 0, repetition_penalty = 1;
  TokenId known = -1;      // nothing is drawn: only this token's log-probability is asked for
  int32_t mask = -1;       // in DrawArgs::masks; -1: every token may come
  ArrayPart counts = {};   // each token once; empty without penalties
  ArrayPart biases = {};   // added in their order
  int32_t top_count = 0;   // how many of the most likely tokens to report, ...
  ArrayPart chosen = {};   // ... tokens to report, likely or not, ...
  int32_t tops_begin = 0;  // ... and where in DrawArgs::tops: first those, then these
};

struct DrawResult {
  TokenId token = -1;  // -1: the mask allows none, or the logits are not numbers
  float logprob = 0;   // of the token, before sampling parameters, as all that are reported
  float log_sum_exp = 0;
  int32_t top_count = 0;  // less than were asked for where the others are impossible
};

// Of every row of logits the next token: a function of the row and its DrawRow alone, and the same
// bits in every table (kernels/race.h). Masks have a bit for every token of the vocabulary, and
// zeros after the last.
struct DrawArgs {
  Launch launch = {};
  const float* logits = nullptr;       // [rows, vocabulary]
  const int32_t* argmax = nullptr;     // [rows], as logit_stats finds them
  const float* log_sum_exp = nullptr;  // [rows]
  int64_t rows = 0, vocabulary = 0;
  const DrawRow* draws = nullptr;   // [rows]
  const uint32_t* masks = nullptr;  // [..., (vocabulary + 31) / 32]
  const TokenCount* counts = nullptr;
  const TokenBias* biases = nullptr;
  const TokenId* chosen = nullptr;
  DrawResult* results = nullptr;  // [rows]
  TokenLogprob* tops = nullptr;
};

// The tokens of a step's rows where some are what the step before drew: a token t below 0 stands
// for that of drawn[-1 - t], or 0 if none was drawn there.
struct ResolveTokensArgs {
  Launch launch = {};
  const TokenId* tokens = nullptr;  // [rows]
  const DrawResult* drawn = nullptr;
  TokenId* out = nullptr;  // [rows]
  int64_t rows = 0;
};

// ----------------------------------------------------------------------------------------------

// Raised whenever any table, or an op over one, changes a bit of a result: states that were stored
// or sent before are then no longer taken for those of today.
inline constexpr int kArithmeticRevision = 1;

struct KernelTable {
  const char* name = "";              // "portable", "avx2", "avx512", ...
  const DeviceOps* device = nullptr;  // whose memory the kernels read and write

  GemmKernel gemm_f32 = {};
  GemmKernel gemm_bf16 = {};
  GemmKernel gemm_f16 = {};
  GemmKernel gemm_int8 = {};
  GemmKernel gemm_int4 = {};
  GemmKernel gemm_uint4 = {};
  GemmKernel gemm_mxfp4 = {};
  GemmKernel gemm_fp8 = {};

  void (*rms_norm)(const RmsNormArgs&) = nullptr;
  void (*rope_angles)(const RopeAnglesArgs&) = nullptr;
  void (*rope)(const RopeArgs&) = nullptr;
  void (*silu_mul)(const SiluMulArgs&) = nullptr;
  void (*scale)(const ScaleArgs&) = nullptr;
  void (*gate_mul)(const GateMulArgs&) = nullptr;
  void (*add)(const AddArgs&) = nullptr;
  void (*logit_stats)(const LogitStatsArgs&) = nullptr;
  void (*route)(const RouteArgs&) = nullptr;
  void (*sort_experts)(const SortExpertsArgs&) = nullptr;
  void (*combine_experts)(const CombineExpertsArgs&) = nullptr;
  void (*copy_rows)(const CopyRowsArgs&) = nullptr;
  void (*copy_units)(const CopyUnitsArgs&) = nullptr;
  void (*page_write)(const PageWriteArgs&) = nullptr;
  void (*page_read)(const PageReadArgs&) = nullptr;
  void (*attention)(const AttentionArgs&) = nullptr;
  void (*latent_attention)(const LatentAttentionArgs&) = nullptr;
  void (*linear_attention)(const LinearAttentionArgs&) = nullptr;
  void (*delta_attention)(const DeltaAttentionArgs&) = nullptr;
  void (*delta_gates)(const DeltaGatesArgs&) = nullptr;
  void (*state_space)(const StateSpaceArgs&) = nullptr;
  void (*state_space_gates)(const StateSpaceGatesArgs&) = nullptr;
  void (*short_conv)(const ShortConvArgs&) = nullptr;
  void (*draw)(const DrawArgs&) = nullptr;
  void (*resolve_tokens)(const ResolveTokensArgs&) = nullptr;
};

}  // namespace banyan
