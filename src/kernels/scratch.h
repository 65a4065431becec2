// Scratch memory of CPU kernels: thread-local, grows to the largest request and lives until the
// thread ends.
#pragma once

#include <cstddef>

namespace banyan {

// Returns at least `floats` floats, aligned to a cache line and uninitialised. Valid until this
// thread calls the same function again.
float* worker_scratch(size_t floats);  // for one worker's share
float* shared_scratch(size_t floats);  // passed by a launch's driver to all its workers

}  // namespace banyan
