#include "tier/disk/room.h"

#include "base/error.h"
#include "base/signed.h"
#include "tier/record.h"

namespace banyan {
namespace {

constexpr double kSlotFraction = 0.5;

}  // namespace

Status check_division(const TierConfig& config, const TierStates& states) {
  if (config.slot_fraction == 0) return {};
  if (!(config.slot_fraction > 0 && config.slot_fraction < 1)) {
    return invalid_argument("the share for snapshots is {}; it must be above 0 and below 1",
                            config.slot_fraction);
  }
  bool pages = false, slots = false;
  for (int c = 0; c < states.classes.count; ++c) {
    if (at(states.unit_bytes, c) == 0) continue;
    (states.classes[c].paged() ? pages : slots) = true;
  }
  if (pages && slots) return {};
  return invalid_argument(
      "a share of {} for snapshots, but the states of {} are all {}: there is nothing to divide",
      config.slot_fraction, states.model, slots ? "snapshots" : "pages");
}

PerClass<int64_t> divide_room(const TierConfig& config, const TierStates& states) {
  PerClass<double> sizes = {};
  double pages = 0, slots = 0;
  for (int c = 0; c < states.classes.count; ++c) {
    RecordShape shape = record_shape(config, states, c);
    if (shape.payload_bytes == 0) continue;
    at(sizes, c) = shape.bytes();
    (states.classes[c].paged() ? pages : slots) += shape.bytes();
  }
  double fraction = config.slot_fraction > 0 ? config.slot_fraction : kSlotFraction;
  double of_slots = slots == 0 ? 0 : pages == 0 ? 1 : fraction;
  PerClass<int64_t> shares = {};
  for (int c = 0; c < states.classes.count; ++c) {
    double size = at(sizes, c);
    if (size == 0) continue;
    double part =
        states.classes[c].paged() ? (1 - of_slots) * size / pages : of_slots * size / slots;
    at(shares, c) = static_cast<int64_t>(config.size_bytes * part);
  }
  return shares;
}

}  // namespace banyan
