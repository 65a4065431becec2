#include "nn/short_conv.h"

#include <cmath>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/signed.h"

namespace banyan {
namespace {

// How many of the part's rows this rank has.
int64_t own_rows(Builder b, const MatrixPart& part) {
  if (part.shard.cut != Shard::Cut::kRows) return part.rows;
  return part.rows / part.shard.units * b.part(part.shard.units).count;
}

// Stacks the weights [channels, taps] of all parts, this rank's channels only, as [taps, channels],
// so that adjacent channels are contiguous.
Tensor stack_weights(Builder b, std::initializer_list<MatrixPart> parts, int64_t taps) {
  std::vector<float> rows;  // [channels, taps]
  int64_t channels = 0;
  bool complete = true;
  for (const MatrixPart& part : parts) {
    // Centred on a moving average, so that random weights do not cancel the signal.
    float center = 1 / static_cast<float>(taps);
    std::vector<float> own =
        (b / part.name).host_values("weight", {part.rows, taps}, center, part.shard);
    complete = complete && !own.empty();
    rows.insert(rows.end(), own.begin(), own.end());
    channels += own_rows(b, part);
  }
  if (!complete) return b.constant({taps, channels}, {});
  std::vector<float> stacked(rows.size());
  for (int64_t i = 0; i < std::ssize(rows); ++i) {
    at(stacked, i % taps * channels + i / taps) = at(rows, i);
  }
  return b.constant({taps, channels}, stacked);
}

// Declares a state and its log, whose rows are of `log_width` floats.
SlotState slot_state(Builder b, StateSpec spec, int64_t log_width) {
  spec.unit = StateUnit::kSlot;
  spec.reach = StateReach::kPoint;
  StateSpec log = {.name = spec.name + "_log",
                   .unit = StateUnit::kSlot,
                   .reach = StateReach::kNone,
                   .width = log_width,
                   .draft_log = true};
  StateId state = b.state(std::move(spec));
  return {.state = state, .log = b.state(std::move(log))};
}

}  // namespace

ShortConv::ShortConv(Builder b, std::initializer_list<MatrixPart> parts, const ShortConvConfig& c)
    : convolution_{.weight = stack_weights(b, parts, c.taps), .silu = c.silu},
      state_(slot_state(
          b, {.name = "convolution", .heads = c.taps - 1, .width = convolution_.weight.dim(1)},
          convolution_.weight.dim(1))) {
  CHECK(parts.size() > 0 && c.taps > 1, "{} parts, {} taps", parts.size(), c.taps);
  if (c.bias) convolution_.bias = b.vector(parts, "bias", 0);
}

UnitNorm::UnitNorm(Builder b, int64_t dim)
    : weight_(b.constant({dim}, filled(dim, 1 / std::sqrt(static_cast<float>(dim))))),
      eps_(1e-6f / static_cast<float>(dim)) {}

SlotState recurrent_state(Builder b, const LinearAttentionShape& shape, int chunk_tokens,
                          int64_t decays) {
  StateSpec spec = {.name = "recurrent",
                    .heads = shape.heads,
                    .width = shape.key_dim * shape.value_dim,
                    .alignment_tokens = chunk_tokens,
                    .two_forms = true};
  int64_t width = update_width(decays, shape.key_dim, shape.value_dim);
  return slot_state(b, std::move(spec), shape.heads * width);
}

}  // namespace banyan
