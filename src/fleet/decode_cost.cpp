#include "fleet/decode_cost.h"

#include <algorithm>

#include "base/error.h"

namespace banyan {

Status DecodeSetting::validate() const {
  if (!(acceptance >= 0 && acceptance <= 1)) {
    return invalid_argument("acceptance is {}; it must be between 0 and 1", acceptance);
  }
  if (!(reached > 0 && reached <= 1)) {
    return invalid_argument(
        "the reached share of the limit is {}; it must be above 0 and at most 1", reached);
  }
  if (batch < 1 || draft_tokens < 0 || !(bytes_per_s > 0) || !(dollars_per_hour >= 0)) {
    return invalid_argument(
        "batch {}, draft tokens {}, bytes/s {}, dollars an hour {}: the first must be at least 1, "
        "bandwidth above 0, and the others not negative",
        batch, draft_tokens, bytes_per_s, dollars_per_hour);
  }
  return {};
}

DecodeCost decode_cost(const DecodeShape& shape, const DecodeSetting& setting) {
  double rows = setting.batch * (1 + setting.draft_tokens);
  double elements = rows * shape.experts_per_token * shape.hidden;
  DecodeCost cost = {.dispatch_s = elements * shape.dispatch_bytes / setting.bytes_per_s,
                     .combine_s = elements * shape.combine_bytes / setting.bytes_per_s};
  cost.layer_s = shape.exposed_s + std::max(cost.dispatch_s + cost.combine_s, shape.overlapped_s) +
                 shape.experts_s;
  double tokens = 1 + setting.draft_tokens * setting.acceptance;
  cost.tpot_s = cost.layer_s * shape.layers / tokens / setting.reached;
  cost.tokens_per_s_of_user = 1 / cost.tpot_s;
  cost.tokens_per_s_of_device = setting.batch / cost.tpot_s;
  cost.dollars_per_million =
      dollars_per_million(cost.tokens_per_s_of_device, setting.dollars_per_hour);
  return cost;
}

double dollars_per_million(double tokens_per_s_of_device, double dollars_per_hour) {
  return dollars_per_hour / 3600 / tokens_per_s_of_device * 1e6;
}

}  // namespace banyan
