// The sampling that a checkpoint's generation_config.json recommends.
#pragma once

#include <string>

#include "banyan/request.h"
#include "banyan/status.h"

namespace banyan {

// Neutral values (temperature 1, no filter) where the file is silent or absent; greedy where it
// says `do_sample: false`. A GGUF file has its own under "general.sampling.". A value out of range
// is an error that names it.
Result<SamplingParams> read_recommended_sampling(const std::string& folder);

}  // namespace banyan
