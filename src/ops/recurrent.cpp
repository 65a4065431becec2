#include "ops/recurrent.h"

#include "base/check.h"

namespace banyan {
namespace {

// Spans and captures at which the prefill form of a state with `chunk` can start and end.
void check_slots(const Step& s, int64_t chunk) {
  const Batch& b = s.batch;
  auto in_pools = [&](int32_t slot) { return slot >= 0 && slot < s.pools.sizes().slots; };
  for (size_t i = 0; i < b.spans.size(); ++i) {
    int64_t first = b.spans[i].first_position, end = first + b.spans[i].row_count;
    int64_t prompt = b.prompt_tokens[i];
    CHECK(in_pools(b.slots[i]), "slot {} of {}", b.slots[i], s.pools.sizes().slots);
    CHECK((first >= prompt || first % chunk == 0) && (end >= prompt || end % chunk == 0),
          "positions {} to {} of a prompt of {} in chunks of {}", first, end, prompt, chunk);
  }
  for (const Capture& capture : b.captures) {
    int64_t end = int64_t{capture.position} + 1;
    int64_t prompt = b.prompt_tokens[static_cast<size_t>(capture.span)];
    CHECK(in_pools(capture.slot), "slot {} of {}", capture.slot, s.pools.sizes().slots);
    CHECK(end <= prompt && end % chunk == 0, "{} positions of a prompt of {} in chunks of {}", end,
          prompt, chunk);
  }
}

SlotSpans slot_spans(const Step& s) {
  return {.spans = s.batch.spans.data(),
          .count = std::ssize(s.batch.spans),
          .slots = s.batch.slots.data(),
          .prompt_tokens = s.batch.prompt_tokens.data(),
          .captures = s.batch.captures.data(),
          .capture_count = std::ssize(s.batch.captures)};
}

}  // namespace

Tensor linear_attention(Step& s, Tensor q, Tensor k, Tensor v, Tensor log_decay, StateId state,
                        const LinearAttentionShape& shape) {
  q.check_matrix(shape.heads * shape.key_dim);
  k.check_matrix(shape.heads * shape.key_dim);
  v.check_matrix(shape.heads * shape.value_dim);
  const StateSpec& spec = s.pools.spec(state);
  CHECK(spec.reach == StateReach::kPoint && spec.heads == shape.heads &&
            spec.width == shape.key_dim * shape.value_dim && log_decay.count() == shape.heads,
        "{}: {} heads of {}", spec.name, spec.heads, spec.width);
  check_slots(s, spec.alignment_tokens);
  Tensor out = s.allocate({q.dim(0), v.dim(1)});
  s.kernels.linear_attention({.launch = s.launch,
                              .q = q.f32(),
                              .k = k.f32(),
                              .v = v.f32(),
                              .q_row_stride = q.stride(0),
                              .k_row_stride = k.stride(0),
                              .v_row_stride = v.stride(0),
                              .log_decay = log_decay.f32(),
                              .states = static_cast<float*>(s.pools.pool(state)),
                              .out = out.f32(),
                              .heads = shape.heads,
                              .key_dim = shape.key_dim,
                              .value_dim = shape.value_dim,
                              .chunk = spec.alignment_tokens,
                              .scale = shape.scale,
                              .spans = slot_spans(s)});
  return out;
}

}  // namespace banyan
