// Memory that a CPU kernel works in besides its arguments: it belongs to the calling thread, grows
// to what the largest call needed and is kept until the thread ends.
#pragma once

#include <cstddef>

namespace banyan {

// At least `floats` floats from a cache line's beginning, undefined. Valid until this thread calls
// the same function again.
float* worker_scratch(size_t floats);  // for one worker's share
float* shared_scratch(size_t floats);  // handed by the driver of a launch to all its workers

}  // namespace banyan
