#include "ops/recurrent.h"

#include <algorithm>

#include "base/check.h"
#include "base/signed.h"
#include "kernels/slot_rows.h"

namespace banyan {
namespace {

// Checks that the prefill form of a state with `chunk` can start and end at the spans and captures.
void check_slots(const Step& s, StateId state, int64_t chunk) {
  const Batch& b = s.batch;
  CHECK(s.pools.spec(state).reach == StateReach::kPoint, "{}", s.pools.spec(state).name);
  const UnitTable& table = s.table(state);
  int64_t count = s.pools.units(s.pools.class_of(state));
  auto in_pools = [&](int32_t slot) { return slot >= 0 && slot < count; };
  for (size_t i = 0; i < b.spans.size(); ++i) {
    int64_t first = b.spans[i].first_position, end = first + b.spans[i].row_count;
    int64_t prompt = b.prompt_tokens[i];
    CHECK(in_pools(table.units[i]), "slot {} of {}", table.units[i], count);
    CHECK((first >= prompt || first % chunk == 0) && (end >= prompt || end % chunk == 0),
          "positions {} to {} of a prompt of {} in chunks of {}", first, end, prompt, chunk);
  }
  for (const Capture& capture : table.captures) {
    int64_t end = int64_t{capture.position} + 1;
    int64_t prompt = at(b.prompt_tokens, capture.span);
    CHECK(in_pools(capture.slot), "slot {} of {}", capture.slot, count);
    CHECK(end >= prompt || end % chunk == 0, "{} positions of a prompt of {} in chunks of {}", end,
          prompt, chunk);
  }
}

// Checks that the log has rows of `width` for the step's drafts.
void check_log(const Step& s, StateId log, int64_t width) {
  const StateSpec& spec = s.pools.spec(log);
  CHECK(spec.draft_log && spec.width == width, "{}: rows of {}, not {}", spec.name, spec.width,
        width);
  int64_t count = s.pools.units(s.pools.class_of(log));
  for (size_t i = 0; i < s.batch.drafts.size(); ++i) {
    const auto& [drafts, replayed, held] = s.batch.drafts[i];
    int32_t unit = s.table(log).units[i];
    CHECK(unit >= 0 && unit < count, "log {} of {}", unit, count);
    CHECK(std::max(held + drafts, replayed) <= spec.heads, "{} drafts after {}, {} replayed of {}",
          drafts, held, replayed, spec.heads);
  }
}

SlotSpans slot_spans(const Step& s, const SlotState& state, int64_t log_width) {
  check_log(s, state.log, log_width);
  const UnitInputs& inputs = s.table_inputs(state.state);
  DraftLog log = {.data = static_cast<float*>(s.pools.pool(state.log)),
                  .units = s.table_inputs(state.log).units,
                  .rows = s.pools.spec(state.log).heads};
  return {.spans = s.inputs.spans.device,
          .count = s.inputs.spans.count(),
          .slots = inputs.units,
          .prompt_tokens = s.inputs.prompt_tokens,
          .captures = inputs.captures,
          .capture_count = std::ssize(s.table(state.state).captures),
          .drafts = s.batch.drafts.empty() ? nullptr : s.inputs.drafts,
          .log = log};
}

// Fills in the kernel arguments that all recurrences share.
template <class Args>
Args recurrence(Step& s, Tensor q, Tensor k, Tensor v, const SlotState& state,
                const LinearAttentionShape& shape, int64_t decays, Tensor out) {
  CHECK(shape.heads % shape.group == 0, "{} heads in groups of {}", shape.heads, shape.group);
  q.check_matrix(shape.key_width());
  k.check_matrix(shape.key_width());
  v.check_matrix(shape.value_width());
  const StateSpec& spec = s.pools.spec(state.state);
  CHECK(spec.heads == shape.heads && spec.width == shape.key_dim * shape.value_dim,
        "{}: {} heads of {}", spec.name, spec.heads, spec.width);
  check_slots(s, state.state, spec.alignment_tokens);
  Args args;
  args.launch = s.launch;
  args.q = q.f32();
  args.k = k.f32();
  args.v = v.f32();
  args.q_row_stride = q.stride(0);
  args.k_row_stride = k.stride(0);
  args.v_row_stride = v.stride(0);
  args.states = static_cast<float*>(s.pools.pool(state.state));
  args.out = out.f32();
  args.heads = shape.heads;
  args.key_dim = shape.key_dim;
  args.value_dim = shape.value_dim;
  args.group = shape.group;
  args.chunk = spec.alignment_tokens;
  int64_t width = update_width(decays, shape.key_dim, shape.value_dim);
  args.spans = slot_spans(s, state, shape.heads * width);
  const Batch& b = s.batch;
  args.spans.rows = count_rows(b.spans, b.prompt_tokens, b.drafts, args.chunk);
  return args;
}

}  // namespace

Tensor linear_attention(Step& s, Tensor q, Tensor k, Tensor v, Tensor log_decay,
                        const SlotState& state, const LinearAttentionShape& shape) {
  Tensor out = s.allocate({q.dim(0), v.dim(1)});
  auto args = recurrence<LinearAttentionArgs>(s, q, k, v, state, shape, 0, out);
  CHECK(log_decay.count() == shape.heads, "{} decays", log_decay.count());
  args.log_decay = log_decay.f32();
  args.scale = shape.scale;
  s.kernels.linear_attention(args);
  return out;
}

DeltaGates delta_gates(Step& s, Tensor decay_logits, Tensor beta_logits, Tensor log_rate,
                       Tensor bias, float lower_bound) {
  int64_t rows = decay_logits.dim(0), heads = log_rate.dim(0);
  decay_logits.check_matrix(bias.dim(0));
  beta_logits.check_matrix(heads);
  CHECK(bias.dim(0) % heads == 0 && beta_logits.dim(0) == rows, "{} channels of {} heads",
        bias.dim(0), heads);
  DeltaGates gates = {s.allocate({rows, bias.dim(0)}), s.allocate({rows, heads})};
  s.kernels.delta_gates({.launch = s.launch,
                         .decay_logits = decay_logits.f32(),
                         .beta_logits = beta_logits.f32(),
                         .decay_row_stride = decay_logits.stride(0),
                         .beta_row_stride = beta_logits.stride(0),
                         .log_rate = log_rate.f32(),
                         .bias = bias.f32(),
                         .lower_bound = lower_bound,
                         .decay = gates.decay.f32(),
                         .beta = gates.beta.f32(),
                         .rows = rows,
                         .heads = heads,
                         .key_dim = bias.dim(0) / heads});
  return gates;
}

Tensor delta_attention(Step& s, Tensor q, Tensor k, Tensor v, const DeltaGates& gates,
                       const SlotState& state, const LinearAttentionShape& shape) {
  Tensor out = s.allocate({q.dim(0), v.dim(1)});
  int64_t decays = gates.decay.dim(1) / shape.heads;
  auto args = recurrence<DeltaAttentionArgs>(s, q, k, v, state, shape, decays, out);
  args.decay_dim = decays;
  CHECK(args.decay_dim == shape.key_dim || args.decay_dim == 1, "{} decays of {} heads",
        gates.decay.dim(1), shape.heads);
  gates.beta.check_matrix(shape.heads);
  args.decay = gates.decay.f32();
  args.beta = gates.beta.f32();
  args.scale = shape.scale;
  s.kernels.delta_attention(args);
  return out;
}

StateSpaceGates state_space_gates(Step& s, Tensor step_logits, Tensor bias, Tensor log_rate,
                                  const StepLimits& limits) {
  int64_t rows = step_logits.dim(0), heads = log_rate.dim(0);
  step_logits.check_matrix(heads);
  CHECK(bias.dim(0) == heads, "{} biases of {} heads", bias.dim(0), heads);
  StateSpaceGates gates = {s.allocate({rows, heads}), s.allocate({rows, heads})};
  s.kernels.state_space_gates({.launch = s.launch,
                               .step_logits = step_logits.f32(),
                               .logits_row_stride = step_logits.stride(0),
                               .bias = bias.f32(),
                               .log_rate = log_rate.f32(),
                               .step_min = limits.min,
                               .step_max = limits.max,
                               .step = gates.step.f32(),
                               .decay = gates.decay.f32(),
                               .rows = rows,
                               .heads = heads});
  return gates;
}

Tensor state_space(Step& s, Tensor q, Tensor k, Tensor v, const StateSpaceGates& gates, Tensor skip,
                   const SlotState& state, const LinearAttentionShape& shape) {
  Tensor out = s.allocate({q.dim(0), v.dim(1)});
  auto args = recurrence<StateSpaceArgs>(s, q, k, v, state, shape, 1, out);
  CHECK(skip.dim(0) == shape.heads, "{} skip factors for {} heads", skip.dim(0), shape.heads);
  args.decay = gates.decay.f32();
  args.step = gates.step.f32();
  args.skip = skip.f32();
  s.kernels.state_space(args);
  return out;
}

Tensor short_conv(Step& s, Tensor x, const Convolution& convolution, const SlotState& state) {
  const Tensor& weight = convolution.weight;
  int64_t channels = weight.dim(1), taps = weight.dim(0);
  x.check_matrix(channels);
  const StateSpec& spec = s.pools.spec(state.state);
  CHECK(spec.heads == taps - 1 && spec.width == channels, "{}: {} inputs of {}", spec.name,
        spec.heads, spec.width);
  check_slots(s, state.state, 1);
  Tensor y = s.allocate({x.dim(0), channels});
  s.kernels.short_conv({.launch = s.launch,
                        .x = x.f32(),
                        .x_row_stride = x.stride(0),
                        .weight = weight.f32(),
                        .bias = convolution.bias.empty() ? nullptr : convolution.bias.f32(),
                        .states = static_cast<float*>(s.pools.pool(state.state)),
                        .y = y.f32(),
                        .silu = convolution.silu,
                        .channels = channels,
                        .taps = taps,
                        .spans = slot_spans(s, state, channels)});
  return y;
}

}  // namespace banyan
