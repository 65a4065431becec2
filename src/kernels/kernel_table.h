// The porting contract: every computation of a forward pass as a function pointer and a plain
// argument struct. Kernels see raw pointers; ops have checked the shapes. A new instruction set or
// device fills the same table.
//
// Rules for every table:
// - kernels/portable is the definition; other tables agree with it within a stated bound.
// - A row's result depends only on that row's data and absolute position: the same arithmetic
//   (order over k, operand rounding) for 1 row and for 512, for any number of threads and any
//   grouping of rows into spans.
// - A kernel returns when its work is done (CPU) or enqueued on launch.queue (device). It copies
//   its argument struct if it needs it later, but nothing that the struct points to.
// - Every pointer in an argument struct is to memory of the table's device and stays valid until
//   the queue has completed the call: inputs of the batch, weights, activations and states alike.
//   Two exceptions are in host memory: `launch.threads`, and all of PackArgs, since matrices are
//   packed on the host and then uploaded (see Staging).
// - Activations are f32. Strides are in elements; the last axis is dense.
#pragma once

#include <cstddef>
#include <cstdint>

#include "banyan/token.h"
#include "kernels/gemm.h"
#include "kernels/moe.h"
#include "kernels/sparse.h"
#include "tensor/device.h"
#include "tensor/dtype.h"

namespace banyan {

// ---- Row-wise --------------------------------------------------------------------------------

// y = x * rsqrt(mean(x^2) + eps) * weight, over the last axis of [rows, groups, dim].
struct RmsNormArgs {
  Launch launch = {};
  const float* x = nullptr;
  int64_t x_row_stride = 0;         // groups are dense within a row
  const float* weight = nullptr;    // [dim], or [groups, dim]
  int64_t weight_group_stride = 0;  // 0: groups share one weight; dim: each has its own
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

// The function of gate g and up u in a gated feed-forward block.
enum class GluForm : uint8_t {
  kSilu,      // silu(g) u; with a limit, min(silu(g), limit) clamp(u, -limit, limit)
  kGeluTanh,  // gelu(g) u, by the approximation with tanh
  kSwigluOai  // g sigmoid(1.702 g) (u + 1) with g = min(g, limit), u = clamp(u, -limit, limit)
};

// Combines gate[r, i] and up[r, i] by one of these functions.
struct SiluMulArgs {
  Launch launch = {};
  const float* gate = nullptr;
  const float* up = nullptr;
  int64_t x_row_stride = 0;  // of both gate and up
  float* y = nullptr;        // [rows, dim] dense
  int64_t rows = 0, dim = 0;
  float limit = 0;  // 0: none
  GluForm form = GluForm::kSilu;
};

// A product whose outputs are gates, then as many ups, and what the activation makes of them: the
// bits of the two one after the other. Nothing may read product.y, which may stay as it was.
struct GatedGemmArgs {
  GemmArgs product;        // of n = 2 activation.dim outputs
  SiluMulArgs activation;  // of product.y
};

// y[r, i] = cap(factor(r) * scale * x[r, i]), where cap(z) is z, or soft_cap * tanh(z / soft_cap).
// factor(r) is 1, or with `positions` 1 + position_beta * ln(1 + floor((position(r) +
// position_offset) / position_period)), the query scaling of Llama 4 and similar models.
struct ScaleArgs {
  Launch launch = {};
  const float* x = nullptr;
  int64_t x_row_stride = 0;
  float* y = nullptr;  // [rows, dim] dense; may alias a dense x
  int64_t rows = 0, dim = 0;
  float scale = 1;
  float soft_cap = 0;                  // 0: none
  const int32_t* positions = nullptr;  // [rows] or null
  float position_beta = 0, position_period = 1, position_offset = 0;
};

enum class GateFunction : uint8_t { kSigmoid, kSilu, kRelu, kIdentity };

// y[r, i] = f(gate[r, i / gate_columns]) * x[r, i]. With a gate_row_stride of 0 all rows share the
// gates. With relu and x itself as the gate, this is squared relu.
struct GateMulArgs {
  Launch launch = {};
  const float* gate = nullptr;
  const float* x = nullptr;
  int64_t gate_row_stride = 0, x_row_stride = 0;
  float* y = nullptr;  // [rows, dim] dense
  int64_t rows = 0, dim = 0;
  int64_t gate_columns = 1;  // columns per gate
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

// Per row of logits: the largest value, its lowest index, and log(sum(exp(x))). A NaN anywhere in a
// row makes its log_sum_exp NaN; max and index then ignore NaNs, and are -inf and 0 if there is
// nothing else.
struct LogitStatsArgs {
  Launch launch = {};
  const float* x = nullptr;  // [rows, dim]
  int64_t x_row_stride = 0;
  int64_t rows = 0, dim = 0;
  float* max = nullptr;          // [rows]
  int32_t* argmax = nullptr;     // [rows]
  float* log_sum_exp = nullptr;  // [rows]
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

// y[index[i]] += x[i]. A zero changes nothing, not even the sign of a zero in y. No row of y is
// named twice; x and y do not overlap.
struct AddRowsArgs {
  Launch launch = {};
  const float* x = nullptr;  // [rows, dim]
  int64_t x_row_stride = 0;
  const int32_t* index = nullptr;  // [rows]
  float* y = nullptr;              // [any, dim]
  int64_t y_row_stride = 0;
  int64_t rows = 0, dim = 0;
};

// A copy between two units of a class (cache/state_classes.h). Of a page, it copies the rows of the
// first `tokens` positions, whole rows only; of a slot, everything.
struct UnitCopy {
  int32_t unit_class = 0;
  int32_t from = 0;
  int32_t to = 0;
  int32_t tokens = 0;  // pages only
  bool operator==(const UnitCopy&) const = default;
};

// The memory of one state. Each unit has `parts` parts of `part_bytes`, and a part has rows of
// `row_bytes`: the heads of a page, each with its rows, or a whole slot.
struct UnitPool {
  std::byte* data = nullptr;
  int32_t unit_class = 0;
  int32_t tokens_per_row = 0;  // 0 for slots
  int64_t parts = 1;
  int64_t part_bytes = 0, row_bytes = 0;
};

// Performs the copies in order, in every pool of their class.
struct CopyUnitsArgs {
  Launch launch = {};
  const UnitPool* pools = nullptr;
  int64_t pool_count = 0;
  const UnitCopy* copies = nullptr;
  int64_t copy_count = 0;
};

// ---- Attention over pages --------------------------------------------------------------------

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

// Brings the heads of queries, keys and values from a product to where grouped-query attention
// reads them. Each head of q and k is normed as by RmsNormArgs, if it has a weight, and then
// rotated as by RopeArgs, if there are pairs; or rotated and then normed. Each head of v is normed,
// if it has a weight. Something of this happens to q, or q is null. In the end q is in q_out, and
// the rows of the spans are in the pools as by PageWriteArgs, all to the bits of these kernels one
// after another.
//
// The latents of latent attention are one head of keys in two parts, without queries and values:
// the columns before `split` are normed, and those from there on are rotated.
struct PlaceHeadsArgs {
  Launch launch = {};
  const float* q = nullptr;  // [rows, q_heads, head_dim], heads dense inside a row; null: none
  const float* k = nullptr;  // [rows, kv_heads, head_dim]; null: neither keys nor values
  const float* v = nullptr;  // [rows, kv_heads, head_dim]; may be k; null: no values
  int64_t q_row_stride = 0, k_row_stride = 0, v_row_stride = 0;
  int64_t rows = 0, q_heads = 0, kv_heads = 0, head_dim = 0;
  int64_t split = 0;                // also of quantised rows; 0: heads are not in parts
  const float* q_weight = nullptr;  // [normed_columns()] or null: no norm
  const float* k_weight = nullptr;
  const float* v_weight = nullptr;
  const float* cos = nullptr;  // [rows, pairs]
  const float* sin = nullptr;
  int64_t pairs = 0;
  float eps = 0;
  RopeLayout layout = RopeLayout::kHalves;
  bool norm_after_rope = false;
  float* q_out = nullptr;    // [rows, q_heads, head_dim] dense
  float* kv_room = nullptr;  // [rows, kv_heads, head_dim], for kernels that need it
  void* k_pool = nullptr;
  void* v_pool = nullptr;
  DType pool_dtype = DType::kF32;
  int64_t page_size = 0;
  const SpanArgs* spans = nullptr;
  int64_t span_count = 0;
  const int32_t* page_table = nullptr;

  constexpr int64_t normed_columns() const { return split > 0 ? split : head_dim; }
};

// The inverse of PageWriteArgs: gathers row i of each span as f32.
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

// The keys [begin, end) of a span that a launch reads; begin is a multiple of kAttentionBlock.
struct KeyBlock {
  int32_t begin = 0, end = 0;
};
inline constexpr int64_t kAttentionBlock = 512;

// out[r, h] = sum_j w_j v[j, h / G] / (sum_j w_j + exp(sinks[h])) with w_j = exp(score_j) and
// score_j = scale * q[r, h] . k[j, h / G], over the visible keys j <= position(r), and j >
// position(r) - window if window > 0; G = q_heads / kv_heads. Without sinks their term is absent;
// with soft_cap > 0 a score x becomes soft_cap * tanh(x / soft_cap). The span's own keys and values
// are already in the pools.
//
// Keys are cut at absolute multiples of a tile: spans and page sizes change no bit. Tables that
// have products of bf16 pairs round q and w to bf16 over a bf16 pool if head_dim and value_dim are
// multiples of 32. Rows of a quantised pool have one scale each, which x86 tables apply to the
// score and to the weight in place of the row.
//
// With `blocks` (which excludes a window), several launches process the keys in turn, each span's
// in ascending order without gaps. Until the block that contains the row's own position, out, max
// and weight carry the partial sums; that block's launch is the row's last. The result is
// bit-identical to one launch over all keys.
//
// With `selected` (which excludes a window and blocks), a row sees the keys of its head there, and
// keys are cut at multiples of their rank.
struct AttentionArgs {
  Launch launch = {};
  const float* q = nullptr;  // [rows, q_heads, head_dim], heads dense inside a row
  int64_t q_row_stride = 0;
  int64_t rows = 0;  // of all spans, or 0 if not known; it changes no bit
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
  float* max = nullptr;              // with blocks, [rows, q_heads]: largest score so far
  float* weight = nullptr;           // with blocks: the sum of exp(score - max)
  SelectedKeys selected = {};        // of each kv head, or one choice for all
};

// Attention in which all heads share one key per position, its latent, whose first `rank` columns
// are also the value:
//   out[r, h] = sum over j <= position(r) of softmax_j(scale * q[r, h] . latent_j) latent_j[:rank].
// The span's own latents are already in the pool. Keys are split at absolute multiples of a fixed
// tile, as in AttentionArgs; with `selected`, a row sees those keys alone, cut by their rank.
struct LatentAttentionArgs {
  Launch launch = {};
  const float* q = nullptr;  // [rows, heads, width], heads dense inside a row
  int64_t q_row_stride = 0;
  int64_t rows = 0;            // of all spans, or 0 if not known; it changes no bit
  const void* pool = nullptr;  // [pages, 1, page_size, width]; quantised rows are split at `rank`
  DType pool_dtype = DType::kF32;
  float* out = nullptr;  // [rows, heads, rank] dense
  int64_t heads = 0, width = 0, rank = 0, page_size = 0;
  float scale = 1;
  const SpanArgs* spans = nullptr;
  int64_t span_count = 0;
  const int32_t* page_table = nullptr;
  SelectedKeys selected = {};  // one choice for all heads
};

// ---- Recurrent states in slots ---------------------------------------------------------------

// Copies the state of span `span` after `position` to slot `slot`. The position is known (in the
// span before its drafts, or among the updates that the state takes from the log) and does not
// split a chunk of the prompt.
struct Capture {
  int32_t span = 0;
  int32_t position = 0;
  int32_t slot = 0;
};

// The draft rows of a span, which are its last `count` rows. They leave the state in the slot as it
// is after the rows before them. Their updates go to the sequence's log instead, and a later step
// replays the accepted ones:
// - `replayed`: this many updates from the beginning of the log are applied to the state before the
//   span's first row. They belong to the positions right before the span.
// - `held`: the drafts continue after this many updates from the beginning of the log, which are
//   not applied to the state, and are logged after them. Such a span has only draft rows and
//   replays nothing.
// A replayed update gives the same bits as the row in decode form.
struct DraftRows {
  int32_t count = 0;
  int32_t replayed = 0;
  int32_t held = 0;
  bool operator==(const DraftRows&) const = default;
};

// The log of a state: the updates of a sequence's draft rows, oldest first.
struct DraftLog {
  float* data = nullptr;           // [units, rows, width]; the layout is up to the kernels
  const int32_t* units = nullptr;  // [spans]
  int64_t rows = 0;
};

// What the host that launches a kernel knows of spans in a device's memory.
struct SlotRows {
  int64_t prompt_chunks = -1;  // chunks of prompts, or parts of one; -1: nobody has counted
  int64_t first_prompt = 0, prompts_end = 0;  // all spans with rows of a prompt are among these
  bool has_others = false;                    // rows after a prompt, or drafts
};

// The spans of a step over states in slots. Each span updates the state in its slot in place,
// starting from zero at position 0. Slots of spans and captures in a step are all distinct.
//
// Recurrences have two forms that differ in bits, and a position always uses the same one, whatever
// the span. Positions below the sequence's prompt_tokens use the prefill form, computed in chunks
// that are split at absolute multiples of `chunk`; later positions use the decode form, row by row.
// The state after a prompt with a partial last chunk is also the prefill form's. A span that starts
// below prompt_tokens must therefore start at a multiple of `chunk`, and one that ends below it
// must end at one.
struct SlotSpans {
  const SpanArgs* spans = nullptr;
  int64_t count = 0;
  const int32_t* slots = nullptr;          // [count]
  const int32_t* prompt_tokens = nullptr;  // [count]
  const Capture* captures = nullptr;
  int64_t capture_count = 0;
  const DraftRows* drafts = nullptr;  // [count], or null: no drafts and no replays
  DraftLog log = {};                  // with drafts
  SlotRows rows = {};                 // of the spans (slot_rows.h)
};

// Floats of the log's row for one head of a recurrence: its decays, key and value. Constant decays
// take no room.
static constexpr int64_t update_width(int64_t decays, int64_t key_dim, int64_t value_dim) {
  return decays + key_dim + value_dim;
}

// Linear attention whose state decays by a constant per head (lightning attention):
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
  int64_t group = 1;  // heads per q and k head: q and k have heads / group
  int64_t chunk = 1;
  float scale = 1;
  SlotSpans spans = {};
};

// A selective state space (Mamba 2): linear attention with a decay and a step per row and head, and
// a skip connection for the values:
//   S_t = decay_t S_{t-1} + step_t k_t^T v_t,   o_t = q_t S_t + skip v_t.
// In Mamba's terms q is C, k is B, v is x, step is dt and skip is D.
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

// The gates of a state space:
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

// The delta rule with a decay per key channel (Kimi Delta Attention) or per head (Gated DeltaNet).
// With D_t = Diag(decay_t),
//   S_t = D_t S_{t-1} + beta_t k_t^T (v_t - k_t D_t S_{t-1}),   o_t = scale q_t S_t.
// Keys of norm at most 1 and beta in [0, 1] keep the state bounded.
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
  int64_t decay_dim = 0;  // key_dim, or 1: all channels of a head share a decay
  int64_t group = 1;      // heads per q and k head: q and k have heads / group
  int64_t chunk = 1;
  float scale = 1;
  SlotSpans spans = {};
};

// The gates of the delta rule, where z = decay_logits[r, h, c] + bias[h, c] and
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

// A causal depthwise convolution, then f, which is silu or the identity:
//   y[t, c] = f(bias[c] + sum_j weight[j, c] x[t - taps + 1 + j, c]).
// The state is the last taps - 1 inputs, oldest first. There is only one form. The log's row is the
// input.
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

// The key of a row's random words: kernels/race.h.
struct DrawNoise {
  uint64_t seed = 0;
  int64_t position = 0;  // absolute, of the token to draw
  uint32_t sample_index = 0;
};

// A token of a sequence and its count in the output: 0 if it is only in the prompt.
struct TokenCount {
  TokenId token = 0;
  int32_t in_output = 0;
};

struct TokenBias {
  TokenId token = 0;
  float bias = 0;
};

// A range of an array that all rows of a launch share.
struct ArrayPart {
  int32_t begin = 0;
  int32_t count = 0;
};

// The request of one row of logits; fields of SamplingParams have their meaning there.
struct DrawRow {
  DrawNoise noise = {};
  float temperature = 1, top_p = 1, min_p = 0, typical_p = 1;
  float xtc_probability = 0, xtc_threshold = 0.1f;
  int32_t top_k = 0;
  float frequency_penalty = 0, presence_penalty = 0, repetition_penalty = 1;
  TokenId known = -1;      // >= 0: draw nothing, only report this token's log-probability
  int32_t mask = -1;       // index into DrawArgs::masks; -1: all tokens are allowed
  ArrayPart counts = {};   // each token once; empty without penalties
  ArrayPart biases = {};   // added in order
  int32_t top_count = 0;   // number of most likely tokens to report
  ArrayPart chosen = {};   // further tokens to report
  int32_t tops_begin = 0;  // start in DrawArgs::tops: the most likely first, then the chosen
};

struct DrawResult {
  TokenId token = -1;  // -1: the mask allows none, or a logit is NaN
  float logprob = 0;   // before sampling parameters, like all reported ones
  float log_sum_exp = 0;
  int32_t top_count = 0;  // fewer than requested if the others are impossible
};

// Draws the next token of every row of logits: a function of only the row and its DrawRow, with the
// same bits in every table (kernels/race.h). Masks have a bit per token of the vocabulary, padded
// with zeros.
struct DrawArgs {
  Launch launch = {};
  const float* logits = nullptr;       // [rows, vocabulary]
  const int32_t* argmax = nullptr;     // [rows], from logit_stats
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

// The tokens of a step's rows, some of which the previous step draws: a token t < 0 is replaced by
// the token of drawn[-1 - t], or by 0 if none was drawn.
struct ResolveTokensArgs {
  Launch launch = {};
  const TokenId* tokens = nullptr;  // [rows]
  const DrawResult* drawn = nullptr;
  TokenId* out = nullptr;  // [rows]
  int64_t rows = 0;
};

// Where sequences continue after a step that nobody has read. Each of its spans has the rows of a
// known token and of the drafts after it, and each row has drawn the token after its own. A draft
// is accepted if it equals that, and all before it are. The row of the last accepted one, or of the
// known token, is the span's last row; the token that it drew comes next, at `next`. For each span
// this writes the rows of a step that begins `offset` positions after `next`, as far as the arrays
// below are given.
struct FollowDraftsArgs {
  Launch launch = {};
  const SpanArgs* before = nullptr;   // [spans]
  const TokenId* tokens = nullptr;    // [rows before]
  const DrawResult* drawn = nullptr;  // [rows before]
  int64_t spans = 0;
  int64_t offset = 0;
  SpanArgs* after = nullptr;     // [spans], required: sets only first_position
  int32_t* last_rows = nullptr;  // [spans]: of the step before
  int32_t* positions = nullptr;  // [rows]
  DraftRows* drafts = nullptr;   // [spans]: sets only `replayed`, to the number accepted
  DrawRow* draws = nullptr;      // [rows]: sets only the noise's position, to the row's own ...
  int64_t ahead = 1;             // ... plus this
  // [rows]: a span gets the token at `next` and then those of drafted[i * spans + its number]. One
  // that was not drawn, or is outside the vocabulary, is 0.
  TokenId* next_tokens = nullptr;
  const DrawResult* drafted = nullptr;  // [most rows of a span - 1, spans]
  int64_t vocabulary = 0;
};

// ----------------------------------------------------------------------------------------------

// Incremented whenever a table, or an op on one, changes a bit of a result. States stored or sent
// before are then no longer reused.
inline constexpr int kArithmeticRevision = 3;

struct KernelTable {
  const char* name = "";              // "portable", "avx2", "avx512", ...
  const DeviceOps* device = nullptr;  // the device whose memory the kernels use

  GemmKernel gemm_f32 = {};
  GemmKernel gemm_bf16 = {};
  GemmKernel gemm_f16 = {};
  GemmKernel gemm_int8 = {};
  GemmKernel gemm_int4 = {};
  GemmKernel gemm_uint4 = {};
  GemmKernel gemm_mxfp4 = {};
  GemmKernel gemm_fp8 = {};
  GemmKernel gemm_q2 = {};
  GemmKernel gemm_q3 = {};
  GemmKernel gemm_q4 = {};
  GemmKernel gemm_q5 = {};
  GemmKernel gemm_q6 = {};
  GemmKernel gemm_iq4 = {};

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
  void (*add_rows)(const AddRowsArgs&) = nullptr;
  void (*copy_units)(const CopyUnitsArgs&) = nullptr;
  void (*page_write)(const PageWriteArgs&) = nullptr;
  void (*place_heads)(const PlaceHeadsArgs&) = nullptr;
  void (*page_read)(const PageReadArgs&) = nullptr;
  void (*key_sums)(const KeySumsArgs&) = nullptr;
  void (*block_scores)(const BlockScoresArgs&) = nullptr;
  void (*block_maxima)(const BlockMaximaArgs&) = nullptr;
  void (*select_keys)(const SelectKeysArgs&) = nullptr;
  void (*index_scores)(const IndexScoresArgs&) = nullptr;
  void (*hadamard)(const HadamardArgs&) = nullptr;
  void (*layer_norm)(const LayerNormArgs&) = nullptr;
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
  void (*follow_drafts)(const FollowDraftsArgs&) = nullptr;
  void (*pool_keys)(const PoolKeysArgs&) = nullptr;
  void (*pooled_attention)(const PooledAttentionArgs&) = nullptr;
};

}  // namespace banyan
