#include "kernels/cuda/emulated/tensor_attention.h"

#include <array>
#include <vector>

#include "kernels/cuda/emulated/tensor_gemm.h"
#include "kernels/cuda/tensor_attention.h"

namespace banyan::cuda::emulated {
namespace {

// The keys and values of a tile, prepared for products.
struct KeyTile {
  std::vector<WgmmaOperand> keys, columns;  // a row of keys each; a column of all values each
};

// Keys that no row of the span sees are zeros.
KeyTile load_tile(const AttentionArgs& a, const SpanArgs& span, int64_t kv_head, int64_t first) {
  KeyRange all = keys_of(span, a.window);
  auto width = static_cast<size_t>(a.head_dim), tile = static_cast<size_t>(kKeyTile);
  std::vector<uint16_t> keys(tile * width), columns(width * tile);
  for (int64_t j = 0; j < kKeyTile; ++j) {
    if (first + j < all.first || first + j >= all.end) continue;
    int64_t offset = pool_offset(a.page_table, span, first + j, kv_head, a.kv_heads, a.page_size,
                                 a.head_dim);
    for (size_t c = 0; c < width; ++c) {
      auto at = static_cast<size_t>(offset) + c, row = static_cast<size_t>(j);
      keys[row * width + c] = static_cast<const BFloat16*>(a.k_pool)[at].bits;
      columns[c * tile + row] = static_cast<const BFloat16*>(a.v_pool)[at].bits;
    }
  }
  KeyTile loaded{std::vector<WgmmaOperand>(tile), std::vector<WgmmaOperand>(width)};
  for (size_t j = 0; j < tile; ++j) loaded.keys[j].assign(&keys[j * width], a.head_dim);
  for (size_t c = 0; c < width; ++c) loaded.columns[c].assign(&columns[c * tile], kKeyTile);
  return loaded;
}

WgmmaOperand rounded(const float* values, int64_t count) {
  std::vector<uint16_t> bits(static_cast<size_t>(count));
  for (size_t c = 0; c < bits.size(); ++c) bits[c] = from_float<BFloat16>(values[c]).bits;
  WgmmaOperand operand;
  operand.assign(bits.data(), count);
  return operand;
}

float product(float sum, const WgmmaOperand& x, const WgmmaOperand& y) {
  for (int64_t step = 0; step < x.steps(); ++step) sum = wgmma_step(sum, x, y, step);
  return sum;
}

// A row's sums of a part.
struct Part {
  RowSums sums;
  std::vector<float> out;
};

void add_tile(const AttentionArgs& a, const WgmmaOperand& query, const KeyTile& tile, int64_t first,
              KeyRange keys, Part& part) {
  std::array<float, kKeyTile> weights;
  float max = part.sums.max;
  for (int64_t j = 0; j < kKeyTile; ++j) {
    auto at = static_cast<size_t>(j);
    bool sees = first + j >= keys.first && first + j < keys.end;
    weights[at] = sees ? score_of(product(0, query, tile.keys[at]), a) : -kInfinity;
    max = Largest()(max, weights[at]);
  }
  float kept = exp_of_difference(part.sums.max - max);
  part.sums.max = max;
  for (float& weight : part.sums.weights) weight *= kept;
  for (size_t j = 0; j < weights.size(); ++j) {
    weights[j] = exp_of_difference(weights[j] - max);
    part.sums.weights[j % 8 / 2] += weights[j];
  }
  WgmmaOperand operand = rounded(weights.data(), kKeyTile);
  for (size_t c = 0; c < part.out.size(); ++c) {
    part.out[c] = product(part.out[c] * kept, operand, tile.columns[c]);
  }
}

// A row and head over tiles from the first that it sees.
void attend_row(const AttentionArgs& a, int64_t row, int64_t head, KeyRange keys,
                const std::vector<KeyTile>& tiles, int64_t first_tile) {
  WgmmaOperand query = rounded(a.q + row * a.q_row_stride + head * a.head_dim, a.head_dim);
  std::vector<float> total(static_cast<size_t>(a.value_dim));
  float max = kLowest, weight = 0;
  PartRange parts = parts_of(keys);
  for (int64_t p = parts.begin; p < parts.end; ++p) {
    Part part{{}, std::vector<float>(total.size())};
    for (int64_t first = p * kPartKeys; first < (p + 1) * kPartKeys; first += kKeyTile) {
      if (first + kKeyTile <= keys.first || first >= keys.end) continue;
      add_tile(a, query, tiles[static_cast<size_t>(first / kKeyTile - first_tile)], first, keys,
               part);
    }
    Rescaled r = rescaled(max, part.sums.max);
    max = r.max;
    weight = weight * r.kept + part.sums.weight() * r.added;
    for (size_t c = 0; c < total.size(); ++c) total[c] = total[c] * r.kept + part.out[c] * r.added;
  }
  LastStep last = last_step(a, head, max, weight);
  float* out = a.out + (row * a.q_heads + head) * a.value_dim;
  for (size_t c = 0; c < total.size(); ++c) out[c] = last(total[c]);
}

}  // namespace

void attend_tiles(const AttentionArgs& a) {
  int64_t group = a.q_heads / a.kv_heads;
  for (int64_t s = 0; s < a.span_count; ++s) {
    const SpanArgs& span = a.spans[s];
    KeyRange all = keys_of(span, a.window);
    int64_t first_tile = all.first / kKeyTile;
    for (int64_t kv_head = 0; kv_head < a.kv_heads; ++kv_head) {
      std::vector<KeyTile> tiles;
      for (int64_t first = first_tile * kKeyTile; first < all.end; first += kKeyTile) {
        tiles.push_back(load_tile(a, span, kv_head, first));
      }
      for (int64_t i = 0; i < span.row_count; ++i) {
        for (int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
          attend_row(a, span.row_begin + i, head, keys_at(span.first_position + i, a.window), tiles,
                     first_tile);
        }
      }
    }
  }
}

}  // namespace banyan::cuda::emulated
