// Reads the sampling parameters that a checkpoint's generation_config.json recommends. Stateless;
// thread-safe.
#pragma once

#include <string>

#include "banyan/request.h"
#include "banyan/status.h"

namespace banyan {

// Missing values are neutral (temperature 1, no filters), as is a missing file; `do_sample: false`
// means greedy. A GGUF file has its own under "general.sampling.". A value out of range is an error
// that names it.
Result<SamplingParams> read_recommended_sampling(const std::string& folder);

}  // namespace banyan
