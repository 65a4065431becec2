// How tokens are drawn, as servers are asked for it.
#pragma once

#include "banyan/request.h"
#include "base/json.h"

namespace banyan {

// Adds what `sampling` says to a body, or to its sampling_params, with the seed under the name
// `seed`. Nothing is sent that says nothing, so that a server need not know the name.
void put_sampling(const SamplingParams& sampling, const char* seed, Json& out);

}  // namespace banyan
