// Where rows lie in a pool of pages.
//
// Files of several instruction sets include this, so nothing here is an inline function with
// external linkage (see x86/vec_avx512.h).
#pragma once

#include <cstdint>

#include "kernels/sparse.h"

namespace banyan {

// The offset, in elements, of the row of `position` of one head in a pool [pages, heads, page_size,
// width].
static constexpr int64_t pool_offset(const int32_t* page_table, const SpanArgs& span,
                                     int64_t position, int64_t head, int64_t heads,
                                     int64_t page_size, int64_t width) {
  // Of 32 bits, since a GPU divides more in a call.
  auto at = static_cast<uint32_t>(position), size = static_cast<uint32_t>(page_size);
  int64_t page = page_table[span.page_begin + at / size];
  return ((page * heads + head) * page_size + at % size) * width;
}

}  // namespace banyan
