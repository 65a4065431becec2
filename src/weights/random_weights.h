// Weights of an untrained model: all shapes and costs are real, the values are random.
#pragma once

#include <cstdint>
#include <string_view>

#include "quant/formats.h"

namespace banyan {

// Elements [begin, begin + count) of the random tensor `name`, uniform around `center`. Each
// depends only on the name and its index.
void random_elements(std::string_view name, int64_t begin, int64_t count, float center, float* to);

// Codes [begin, begin + count) of `name`, and a scale with which their standard deviation is about
// that of random_elements. The scale is a power of two, which every format supports. Much cheaper
// than quantising random_elements.
void random_codes(std::string_view name, int64_t begin, int64_t count, const RandomCodes& codes,
                  uint8_t* to);
float random_scale(const RandomCodes& codes);

}  // namespace banyan
