// Where adapters act on a model: the products whose matrices they may add to. Recorded while the
// model is loaded; plain data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dist/shard.h"

namespace banyan {

// One product y = W x of a layer, perhaps of several stacked matrices.
struct AdapterSite {
  struct Part {
    std::string name;  // "model.layers.0.self_attn.q_proj"
    int64_t rows = 0;  // of y
    Shard shard;       // in whose order they are, if the stored rows are in runs
  };
  std::vector<Part> parts;  // in the order of y's columns
  int64_t columns = 0;      // of x
};

struct AdapterSites {
  std::vector<AdapterSite> sites;  // by number
  // The model's other matrices: experts, routers, embeddings, what is absorbed into others.
  std::vector<std::string> others;
};

}  // namespace banyan
