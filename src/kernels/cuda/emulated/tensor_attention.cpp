#include "kernels/cuda/emulated/tensor_attention.h"

#include <algorithm>
#include <array>
#include <vector>

#include "kernels/cuda/emulated/tensor_gemm.h"
#include "kernels/cuda/tensor_attention.h"

namespace banyan::cuda::emulated {
namespace {

// A tile of keys and values, prepared for products.
struct KeyTile {
  std::vector<WgmmaOperand> keys, columns;  // a row of keys each; a column of all values each
  struct Bad {
    int64_t key, column;
    float value;
  };
  std::vector<Bad> bad;  // values that are not finite
};

// A row of a pool as tensor cores multiply it: quantised ones are rounded.
template <class T>
std::vector<T> pool_row(const AttentionArgs& a, const void* pool, int64_t row) {
  RowShape shape = {.width = a.head_dim, .split = a.value_dim < a.head_dim ? a.value_dim : 0};
  std::vector<T> values(static_cast<size_t>(a.head_dim));
  auto read = [&]<class S>(const S* rows) {
    RowValues<S> stored(rows + row * row_stride<S>(shape), shape);
    for (int64_t c = 0; c < a.head_dim; ++c) {
      values[static_cast<size_t>(c)] = from_float<T>(stored[c]);
    }
  };
  if (a.pool_dtype == DType::kI8) {
    read(static_cast<const int8_t*>(pool));
  } else if (a.pool_dtype == DType::kF8E4M3) {
    read(static_cast<const Float8E4M3*>(pool));
  } else {
    read(static_cast<const T*>(pool));
  }
  return values;
}

// The tile from key `first` on, of keys in `all`; row_of(key) is the row of the pools.
template <class T, class RowOf>
KeyTile load_tile(const AttentionArgs& a, int64_t first, KeyRange all, const RowOf& row_of) {
  auto width = static_cast<size_t>(a.head_dim), values = static_cast<size_t>(a.value_dim);
  auto tile = static_cast<size_t>(kKeyTile);
  KeyTile loaded{std::vector<WgmmaOperand>(tile), std::vector<WgmmaOperand>(values), {}};
  std::vector<T> keys(tile * width), columns(values * tile);
  for (int64_t key = std::max<int64_t>(first, all.first);
       key < std::min<int64_t>(first + kKeyTile, all.end); ++key) {
    auto j = static_cast<size_t>(key - first);
    std::vector<T> of_key = pool_row<T>(a, a.k_pool, row_of(key));
    std::ranges::copy(of_key, keys.begin() + static_cast<std::ptrdiff_t>(j * width));
    std::vector<T> of_value = pool_row<T>(a, a.v_pool, row_of(key));
    for (size_t c = 0; c < values; ++c) {
      T value = of_value[c];  // latents are keys and values at once
      if (is_finite(to_float(value))) {
        columns[c * tile + j] = value;
      } else {
        loaded.bad.push_back({key, static_cast<int64_t>(c), to_float(value)});
      }
    }
  }
  for (size_t j = 0; j < tile; ++j) loaded.keys[j].assign(&keys[j * width], a.head_dim);
  for (size_t c = 0; c < values; ++c) loaded.columns[c].assign(&columns[c * tile], kKeyTile);
  return loaded;
}

template <class T>
WgmmaOperand rounded(const float* values, int64_t count, float factor = 1) {
  std::vector<T> bits(static_cast<size_t>(count));
  for (size_t c = 0; c < bits.size(); ++c) bits[c] = from_float<T>(values[c] * factor);
  WgmmaOperand operand;
  operand.assign(bits.data(), count);
  return operand;
}

float product(float sum, const WgmmaOperand& x, const WgmmaOperand& y) {
  for (int64_t step = 0; step < x.steps(); ++step) sum = wgmma_step(sum, x, y, step);
  return sum;
}

// A row's sums of a part.
template <class T>
struct Part {
  RowSums<T> sums;
  std::vector<float> out;
};

template <class T>
void add_tile(const AttentionArgs& a, const WgmmaOperand& query, const KeyTile& tile, int64_t first,
              KeyRange keys, Part<T>& part) {
  std::array<float, kKeyTile> weights;
  float largest = -kInfinity, factor = exponent_factor(a);
  for (int64_t j = 0; j < kKeyTile; ++j) {
    auto at = static_cast<size_t>(j);
    bool sees = first + j >= keys.first && first + j < keys.end;
    weights[at] = sees ? score_of(product(0, query, tile.keys[at]), a) : -kInfinity;
    largest = Largest()(largest, weights[at]);
  }
  float kept = part.sums.max.raise(largest * factor), offset = part.sums.max.offset();
  for (float& weight : part.sums.weights) weight *= kept;
  for (size_t j = 0; j < weights.size(); ++j) {
    weights[j] = weight_of<T>(weights[j], factor, offset);
    part.sums.add(static_cast<int64_t>(j), weights[j], a);
  }
  for (float& sum : part.out) sum *= kept;
  for (const KeyTile::Bad& bad : tile.bad) {
    if (bad.key >= keys.first && bad.key < keys.end) {
      part.out[static_cast<size_t>(bad.column)] += bad.value;
    }
  }
  WgmmaOperand operand = rounded<T>(weights.data(), kKeyTile);
  for (size_t c = 0; c < part.out.size(); ++c) {
    part.out[c] = product(part.out[c], operand, tile.columns[c]);
  }
}

// A row and head over tiles from the first that it sees.
template <class T>
void attend_row(const AttentionArgs& a, int64_t row, int64_t head, KeyRange keys,
                const std::vector<KeyTile>& tiles, int64_t first_tile) {
  WgmmaOperand query =
      rounded<T>(a.q + row * a.q_row_stride + head * a.head_dim, a.head_dim, query_factor(a));
  std::vector<float> total(static_cast<size_t>(a.value_dim));
  float max = kLowest, weight = 0;
  PartRange parts = parts_of(keys);
  for (int32_t p = parts.begin; p < parts.end; ++p) {
    Part<T> part{{}, std::vector<float>(total.size())};
    for (int64_t first = part_begin(p); first < part_begin(p + 1); first += kKeyTile) {
      if (first + kKeyTile <= keys.first || first >= keys.end) continue;
      add_tile(a, query, tiles[static_cast<size_t>(first / kKeyTile - first_tile)], first, keys,
               part);
    }
    Rescaled r = rescaled(max, part.sums.max.exponent);
    max = r.max;
    weight = weight * r.kept + part.sums.weight() * r.added;
    for (size_t c = 0; c < total.size(); ++c) total[c] = total[c] * r.kept + part.out[c] * r.added;
  }
  LastStep last = last_step(a, head, max, weight);
  float* out = a.out + (row * a.q_heads + head) * a.value_dim;
  for (size_t c = 0; c < total.size(); ++c) out[c] = last(total[c]);
}

// The tiles of the keys in `all`, and all heads of a head of keys for `count` tokens over them.
template <class T, class RowOf>
void attend_tokens(const AttentionArgs& a, const SpanArgs& span, int64_t first, int64_t count,
                   int64_t kv_head, KeyRange all, const RowOf& row_of) {
  int64_t heads = a.q_heads / a.kv_heads, first_tile = all.first / kKeyTile;
  std::vector<KeyTile> tiles;
  for (int64_t key = first_tile * kKeyTile; key < all.end; key += kKeyTile) {
    tiles.push_back(load_tile<T>(a, key, all, row_of));
  }
  for (int64_t i = first; i < first + count; ++i) {
    for (int64_t head = kv_head * heads; head < (kv_head + 1) * heads; ++head) {
      attend_row<T>(a, span.row_begin + i, head, keys_of_token(a, span, i, kv_head), tiles,
                    first_tile);
    }
  }
}

template <class T>
void attend_tiles_of(const AttentionArgs& a) {
  for (int64_t s = 0; s < a.span_count; ++s) {
    const SpanArgs& span = a.spans[s];
    for (int64_t kv_head = 0; kv_head < a.kv_heads; ++kv_head) {
      auto row_of = [&](int64_t position) {
        return pool_offset(a.page_table, span, position, kv_head, a.kv_heads, a.page_size, 1);
      };
      if (a.selected.runs == nullptr) {
        attend_tokens<T>(a, span, 0, span.row_count, kv_head, keys_of(a, span), row_of);
        continue;
      }
      for (int64_t i = 0; i < span.row_count; ++i) {
        SelectedRow selected = selected_row(a.selected, span.row_begin + i, kv_head);
        auto of_rank = [&](int64_t rank) {
          return row_of(selected.position(selected.run_of(rank), rank));
        };
        attend_tokens<T>(a, span, i, 1, kv_head, keys_of_token(a, span, i, kv_head), of_rank);
      }
    }
  }
}

}  // namespace

void attend_tiles(const AttentionArgs& a) {
  a.pool_dtype == DType::kF16 ? attend_tiles_of<Float16>(a) : attend_tiles_of<BFloat16>(a);
}

}  // namespace banyan::cuda::emulated
