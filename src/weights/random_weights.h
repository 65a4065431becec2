// The weights of a model that was never trained: every shape and cost is right, no value means
// anything.
#pragma once

#include <cstdint>
#include <string_view>

#include "quant/formats.h"

namespace banyan {

// Elements [begin, begin + count) of the random numbers of `name`, uniform around `center`. Each
// depends on the name and its own index only.
void random_elements(std::string_view name, int64_t begin, int64_t count, float center, float* to);

// Codes [begin, begin + count) of `name`, and the scale that gives all of them about the deviation
// of random_elements: a power of two, which every format has. Far cheaper than quantising those.
void random_codes(std::string_view name, int64_t begin, int64_t count, const RandomCodes& codes,
                  uint8_t* to);
float random_scale(const RandomCodes& codes);

}  // namespace banyan
