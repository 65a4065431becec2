#include "weights/files/gguf_rows.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/quote.h"

namespace banyan {
namespace {

constexpr int64_t kSizeMax = 1 << 20;  // of heads and their parts

// The largest value of all layers, 0 if there is none: recurrent layers have no key heads.
Result<int64_t> size_in(const GgufArchitecture& architecture, const GgufPairs& pairs,
                        std::string_view leaf) {
  std::string key = fmt::format("{}.{}", architecture.name, leaf);
  int64_t most = 0;
  for (int64_t value : TRY(pairs.integers(key))) {
    if (value < 0 || value > kSizeMax) return corrupt("{}: {} is {}", pairs.path(), key, value);
    most = std::max(most, value);
  }
  return most;
}

// Of a head's rows, the two of a rotary pair are adjacent in the file.
Result<RowSwap> interleaved_heads(const GgufArchitecture& architecture, const GgufPairs& pairs,
                                  const TensorInfo& tensor) {
  bool q = tensor.name.find(".q_proj.") != tensor.name.npos;
  bool k = tensor.name.find(".k_proj.") != tensor.name.npos;
  if (!q && !k) return RowSwap();
  std::string_view leaf = q ? "attention.head_count" : "attention.head_count_kv";
  int64_t heads = TRY(size_in(architecture, pairs, leaf));
  if (heads == 0) heads = TRY(size_in(architecture, pairs, "attention.head_count"));
  int64_t rows = tensor.shape[0];
  if (heads == 0 || rows % (2 * heads) != 0) {
    return corrupt("{}: {} has {} rows in {} heads", pairs.path(), quote(tensor.name), rows, heads);
  }
  return RowSwap{.outer = 2, .inner = rows / heads / 2};
}

// The value heads of Gated DeltaNet are sorted by key head originally, and in the file by their
// number within the key head.
Result<RowSwap> tiled_values(const GgufArchitecture& architecture, const GgufPairs& pairs,
                             const TensorInfo& tensor) {
  auto ends = [&](std::string_view end) { return tensor.name.ends_with(end); };
  bool all = ends(".in_proj_qkv.weight") || ends(".conv1d.weight");
  bool values = all || ends(".in_proj_z.weight");
  if (!values && !ends(".in_proj_a.weight") && !ends(".in_proj_b.weight") && !ends(".A_log") &&
      !ends(".dt_bias")) {
    return RowSwap();
  }
  int64_t key_heads = TRY(size_in(architecture, pairs, "ssm.group_count"));
  int64_t heads = TRY(size_in(architecture, pairs, "ssm.time_step_rank"));
  int64_t key_dim = TRY(size_in(architecture, pairs, "ssm.state_size"));
  int64_t width = TRY(size_in(architecture, pairs, "ssm.inner_size"));
  bool sizes = key_heads > 0 && heads > 0 && heads % key_heads == 0 && width % heads == 0;
  int64_t first = all ? 2 * key_heads * key_dim : 0, rows = values && sizes ? width / heads : 1;
  if (!sizes || tensor.shape[0] != first + heads * rows) {
    return corrupt("{}: {} has {} rows; {} value heads of together {}, {} key heads of {}",
                   pairs.path(), quote(tensor.name), tensor.shape[0], heads, width, key_heads,
                   key_dim);
  }
  return RowSwap{.first = first, .outer = key_heads, .inner = heads / key_heads, .rows = rows};
}

}  // namespace

int64_t RowSwap::stored(int64_t row) const {
  if (row < first) return row;
  int64_t period = outer * inner * rows, within = (row - first) % period;
  int64_t o = within / (inner * rows), i = within / rows % inner;
  return row - within + (i * outer + o) * rows + within % rows;
}

Result<RowSwap> row_swap_of(const GgufArchitecture& architecture, const GgufPairs& pairs,
                            const TensorInfo& tensor) {
  if (architecture.interleaved) return interleaved_heads(architecture, pairs, tensor);
  if (architecture.tiled_values) return tiled_values(architecture, pairs, tensor);
  return RowSwap();
}

ValueChange value_change_of(const GgufArchitecture& architecture, std::string_view name) {
  if (name.ends_with(".A_log")) return ValueChange::kExp;
  bool norm = name.ends_with(".weight") && name.find("norm") != name.npos &&
              !name.ends_with("linear_attn.norm.weight");
  return norm && architecture.norms_plus_one ? ValueChange::kPlusOne : ValueChange::kNone;
}

void undo_change(ValueChange change, std::span<float> values) {
  for (float& value : values) {
    if (change == ValueChange::kPlusOne) value -= 1;
    if (change == ValueChange::kExp) value = std::log(std::abs(value));
  }
}

}  // namespace banyan
