// Sampling parameters as JSON for servers. Stateless; thread-safe.
#pragma once

#include "banyan/request.h"
#include "base/json.h"

namespace banyan {

// Adds the parameters to a body or to its sampling_params, with the seed under the name `seed`.
// Neutral values are omitted, so that the server need not know their names.
void put_sampling(const SamplingParams& sampling, const char* seed, Json& out);

}  // namespace banyan
