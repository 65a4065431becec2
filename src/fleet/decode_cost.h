// The limits of decoding when a mixture of experts is spread over many devices: the cost model of
// the LongCat-Flash report (arXiv 2509.01322, "Theoretical performance").
//
//   layer = exposed + max(dispatch + combine, overlapped) + experts
//   step = layer x layers
//   time per output token (TPOT) = step / (1 + draft tokens x acceptance)
//   device time of a token = TPOT / batch of a device
//
// Attention is data parallel and experts are spread, so in every layer a row travels to its experts
// and back. These are limits, not forecasts: the report's own system reached 61.5% of its own.
#pragma once

#include <cstdint>

#include "banyan/status.h"

namespace banyan {

struct DecodeShape {
  int64_t layers = 0;
  int64_t hidden = 0;
  double experts_per_token = 0;  // with weights: experts that copy their input cost no travel
  double dispatch_bytes = 1;     // of an element on its way to an expert, ...
  double combine_bytes = 2;      // ... and back
  // Of a layer, for a device's batch. LongCat's shortcut lets the second attention and the dense
  // blocks compute while rows travel; with two half batches in turn (TBO) all attention does.
  double exposed_s = 0;     // attention that the experts wait for
  double overlapped_s = 0;  // what computes while rows travel
  double experts_s = 0;
};

struct DecodeSetting {
  int64_t batch = 96;           // sequences of a device
  int64_t draft_tokens = 1;     // verified in each step with the next token
  double acceptance = 0.8;      // of them that are kept
  double bytes_per_s = 40e9;    // that a device sends, and receives
  double dollars_per_hour = 2;  // of a device
  double reached = 1;           // part of the limit that a system reaches

  Status validate() const;
};

struct DecodeCost {
  double dispatch_s = 0, combine_s = 0, layer_s = 0;
  double tpot_s = 0;
  double tokens_per_s_of_user = 0;
  double tokens_per_s_of_device = 0;
  double dollars_per_million = 0;  // output tokens
};

DecodeCost decode_cost(const DecodeShape& shape, const DecodeSetting& setting);

// Of output tokens, where a device writes so many in a second.
double dollars_per_million(double tokens_per_s_of_device, double dollars_per_hour);

}  // namespace banyan
