#include "ops/recurrent.h"

#include "base/check.h"

namespace banyan {
namespace {

// Spans and captures at which the prefill form of a state with `chunk` can start and end.
void check_slots(const Step& s, StateId state, int64_t chunk) {
  const Batch& b = s.batch;
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
    int64_t prompt = b.prompt_tokens[static_cast<size_t>(capture.span)];
    CHECK(in_pools(capture.slot), "slot {} of {}", capture.slot, count);
    CHECK(end >= prompt || end % chunk == 0, "{} positions of a prompt of {} in chunks of {}", end,
          prompt, chunk);
  }
}

SlotSpans slot_spans(const Step& s, StateId state) {
  const UnitInputs& inputs = s.table_inputs(state);
  return {.spans = s.inputs.spans.device,
          .count = s.inputs.spans.count(),
          .slots = inputs.units,
          .prompt_tokens = s.inputs.prompt_tokens,
          .captures = inputs.captures,
          .capture_count = std::ssize(s.table(state).captures)};
}

// What both recurrences read and write, in kernel arguments of either kind.
template <class Args>
Args recurrence(Step& s, Tensor q, Tensor k, Tensor v, StateId state,
                const LinearAttentionShape& shape, Tensor out) {
  q.check_matrix(shape.heads * shape.key_dim);
  k.check_matrix(shape.heads * shape.key_dim);
  v.check_matrix(shape.heads * shape.value_dim);
  const StateSpec& spec = s.pools.spec(state);
  CHECK(spec.reach == StateReach::kPoint && spec.heads == shape.heads &&
            spec.width == shape.key_dim * shape.value_dim,
        "{}: {} heads of {}", spec.name, spec.heads, spec.width);
  check_slots(s, state, spec.alignment_tokens);
  Args args;
  args.launch = s.launch;
  args.q = q.f32();
  args.k = k.f32();
  args.v = v.f32();
  args.q_row_stride = q.stride(0);
  args.k_row_stride = k.stride(0);
  args.v_row_stride = v.stride(0);
  args.states = static_cast<float*>(s.pools.pool(state));
  args.out = out.f32();
  args.heads = shape.heads;
  args.key_dim = shape.key_dim;
  args.value_dim = shape.value_dim;
  args.chunk = spec.alignment_tokens;
  args.scale = shape.scale;
  args.spans = slot_spans(s, state);
  return args;
}

}  // namespace

Tensor linear_attention(Step& s, Tensor q, Tensor k, Tensor v, Tensor log_decay, StateId state,
                        const LinearAttentionShape& shape) {
  Tensor out = s.allocate({q.dim(0), v.dim(1)});
  auto args = recurrence<LinearAttentionArgs>(s, q, k, v, state, shape, out);
  CHECK(log_decay.count() == shape.heads, "{} decays", log_decay.count());
  args.log_decay = log_decay.f32();
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
                       StateId state, const LinearAttentionShape& shape) {
  Tensor out = s.allocate({q.dim(0), v.dim(1)});
  auto args = recurrence<DeltaAttentionArgs>(s, q, k, v, state, shape, out);
  gates.decay.check_matrix(shape.heads * shape.key_dim);
  gates.beta.check_matrix(shape.heads);
  args.decay = gates.decay.f32();
  args.beta = gates.beta.f32();
  s.kernels.delta_attention(args);
  return out;
}

Tensor short_conv(Step& s, Tensor x, Tensor weight, StateId state) {
  int64_t channels = weight.dim(1), taps = weight.dim(0);
  x.check_matrix(channels);
  const StateSpec& spec = s.pools.spec(state);
  CHECK(spec.reach == StateReach::kPoint && spec.heads == taps - 1 && spec.width == channels,
        "{}: {} inputs of {}", spec.name, spec.heads, spec.width);
  check_slots(s, state, 1);
  Tensor y = s.allocate({x.dim(0), channels});
  s.kernels.short_conv({.launch = s.launch,
                        .x = x.f32(),
                        .x_row_stride = x.stride(0),
                        .weight = weight.f32(),
                        .states = static_cast<float*>(s.pools.pool(state)),
                        .y = y.f32(),
                        .channels = channels,
                        .taps = taps,
                        .spans = slot_spans(s, state)});
  return y;
}

}  // namespace banyan
