// What LoRA adapters add to a linear layer (Hu et al. 2021, arXiv:2106.09685): y += B (A x), with
// the scaling folded into B, in rows of spans with an adapter.
//
// The adapters of one step may differ from row to row. Their matrices lie at a fixed stride, so
// that one grouped product multiplies the rows of all of them (as experts' rows; Chen et al. 2023,
// arXiv:2310.18547). A row's bits depend neither on other rows nor on other adapters.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/step.h"
#include "quant/formats.h"

namespace banyan {

// The matrices of all adapters for one product, a slot each. `bytes` is the stride between slots.
struct AdapterProduct {
  struct Part {
    PackedMatrix b;     // [slots] of [rows of the part, rank]
    int64_t first = 0;  // column of y where the part begins
    // [slots] Whether the slot's adapter has matrices for it; they are zero where others have.
    std::vector<uint8_t> used = {};
  };
  PackedMatrix a;  // [slots] of [parts * rank, columns of x]
  std::vector<Part> parts;
};

struct AdapterTable {
  int64_t slots = 0;
  int64_t rank = 0;                      // to which every adapter's matrices are padded with zeros
  std::vector<AdapterProduct> products;  // by site
};

// Whether a row of this step has an adapter for this site. -1: no site.
bool is_adapted(const Step& s, int site);

// Adds to y [T, rows] what the adapters of this step's rows compute of x [T, columns].
void add_adapters(Step& s, int site, Tensor x, Tensor y);

}  // namespace banyan
