// The weights of a model that was never trained: every shape and cost is right, no value means
// anything.
#pragma once

#include <cstdint>
#include <string_view>

namespace banyan {

// Elements [begin, begin + count) of the random numbers of `name`, uniform around `center`. Each
// depends on the name and its own index only.
void random_elements(std::string_view name, int64_t begin, int64_t count, float center, float* to);

}  // namespace banyan
