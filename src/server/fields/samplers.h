// llama.cpp's `samplers`: the names of the filters that a request wants.
#pragma once

#include "banyan/request.h"
#include "server/fields/request.h"

namespace banyan {

// Turns off the filters of `sampling` that the list leaves out; without a list, none. The order of
// the list has no effect, since filters have one. `infill` has none either: completions of code
// end where the model ends them.
void read_samplers(RequestFields& fields, SamplingParams& sampling);

}  // namespace banyan
