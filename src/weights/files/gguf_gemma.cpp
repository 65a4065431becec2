#include "weights/files/gguf_gemma.h"

#include <algorithm>
#include <functional>
#include <string_view>
#include <vector>

#include "base/signed.h"
#include "weights/files/gguf_config.h"

namespace banyan {
namespace {

// Gemma's largest models scale queries by hidden size / heads instead of the head size.
void scale_gemma_queries(GgufConfig& c, int64_t layers_of_largest) {
  bool largest = c.layers() == layers_of_largest;
  c.set("query_pre_attn_scalar", largest ? c.hidden() / c.heads() : c.head_dim());
}

// One value for each layer, of a list or of one number for all.
std::vector<int64_t> of_each_layer(GgufConfig& c, std::string_view key) {
  std::vector<int64_t> values = c.integers(key);
  if (values.size() == 1) values.resize(as_size(c.layers()), values.front());
  c.expect(std::ssize(values) == c.layers(), "{}: gemma4.{} has {} entries for {} layers",
           c.file().pairs().path(), key, values.size(), c.layers());
  values.resize(as_size(c.layers()));
  return values;
}

// The value shared by the layers that slide, or by the others; `fallback` if there are none.
int64_t of_kind(GgufConfig& c, std::string_view key, const std::vector<int64_t>& slides,
                bool sliding, int64_t fallback) {
  std::vector<int64_t> values = of_each_layer(c, key), kind;
  for (size_t i = 0; i < values.size(); ++i) {
    if ((slides[i] != 0) == sliding) kind.push_back(values[i]);
  }
  c.expect(std::ranges::adjacent_find(kind, std::not_equal_to()) == kind.end(),
           "{}: gemma4.{} differs between layers of one kind, which is not supported",
           c.file().pairs().path(), key);
  return kind.empty() ? fallback : kind.front();
}

// The size of a head whose keys are as wide as its values.
int64_t read_head_dim(GgufConfig& c, std::string_view suffix) {
  int64_t key = c.required(fmt::format("attention.key_length{}", suffix));
  int64_t value = c.integer(fmt::format("attention.value_length{}", suffix), key);
  int64_t rotary = c.integer(fmt::format("rope.dimension_count{}", suffix), key);
  c.expect(value == key && rotary == key,
           "{}: gemma4.attention.key_length{} is {}, value_length{} {} and "
           "gemma4.rope.dimension_count{} {}, which is not supported; they must be equal",
           c.file().pairs().path(), suffix, key, suffix, value, suffix, rotary);
  return key;
}

void read_kinds(GgufConfig& c) {
  constexpr std::string_view kHeads = "attention.head_count_kv";
  c.required("attention.sliding_window");
  c.set_window();
  std::vector<int64_t> slides = of_each_layer(c, "attention.sliding_window_pattern");
  c.set("head_dim", read_head_dim(c, "_swa"));
  c.set("global_head_dim", read_head_dim(c, ""));
  int64_t sliding = of_kind(c, kHeads, slides, true, c.heads());
  int64_t full = of_kind(c, kHeads, slides, false, sliding);
  bool value_is_key = false;
  for (int64_t i = 0; i < c.layers(); ++i) {
    auto has = [&](std::string_view projection) {
      return c.stores(fmt::format("model.layers.{}.self_attn.{}.weight", i, projection));
    };
    value_is_key |= at(slides, i) == 0 && has("k_proj") && !has("v_proj");
  }
  c.expect(value_is_key || full == sliding,
           "{}: gemma4.{} is {} in full-attention layers and {} in others, which is not supported "
           "if the former have attn_v",
           c.file().pairs().path(), kHeads, full, sliding);
  c.set("num_key_value_heads", sliding);
  c.set("num_global_key_value_heads", full);
  c.set("attention_k_eq_v", value_is_key);
}

// Layers that share keys may be twice as wide.
void read_widths(GgufConfig& c) {
  constexpr std::string_view kWidth = "feed_forward_length";
  std::vector<int64_t> widths = of_each_layer(c, kWidth);
  int64_t own = c.layers() - c.integer("attention.shared_kv_layers", 0);
  bool wide = widths.back() == 2 * widths.front();
  for (int64_t i = 0; i < c.layers(); ++i) {
    int64_t expected = widths.front() * (wide && i >= own ? 2 : 1);
    c.expect(at(widths, i) == expected,
             "{}: gemma4.{} is {} in layer {}, where only {} is supported", c.file().pairs().path(),
             kWidth, at(widths, i), i, expected);
  }
  c.set("intermediate_size", widths.front());
  c.set("use_double_wide_mlp", wide);
}

// rope_freqs divides the frequencies of full-attention layers by 1, or by so much that a pair does
// not rotate.
void read_rotations(GgufConfig& c) {
  constexpr double kStill = 1e29;
  const std::vector<float>& divisors = c.file().rope_factors();
  auto still = std::ranges::find_if_not(divisors, [](float d) { return d == 1; });
  int64_t pairs = std::ssize(divisors), rotating = still - divisors.begin();
  bool rest_is_still = std::all_of(still, divisors.end(), [](float d) { return d > kStill; });
  int64_t head_dim = c.required("attention.key_length");
  c.expect(2 * pairs == head_dim && rest_is_still,
           "{}: rope_freqs.weight is {}; supported: {} numbers, 1 and then 1e30",
           c.file().pairs().path(), pairs == 0 ? "missing" : "another rotation", head_dim / 2);
  double factor = c.number("rope.scaling.factor", 1);
  c.expect(factor == 1, "{}: gemma4.rope.scaling.factor is {}, which is not supported",
           c.file().pairs().path(), factor);
  // Readers round the number of pairs down; half a pair more keeps rounding errors out.
  double part = std::min(1.0, (rotating + 0.5) * 2 / head_dim);
  c.set("rope_parameters",
        {{"full_attention",
          {{"rope_type", "proportional"},
           {"rope_theta", c.number("rope.freq_base", 1e6)},
           {"partial_rotary_factor", part}}},
         {"sliding_attention",
          {{"rope_type", "default"}, {"rope_theta", c.number("rope.freq_base_swa", 1e4)}}}});
}

}  // namespace

void read_gemma2(GgufConfig& c) {
  scale_gemma_queries(c, 46);
  c.set_window();
}

void read_gemma3(GgufConfig& c) {
  scale_gemma_queries(c, 62);
  c.set("rope_local_base_freq", c.number("rope.freq_base_swa", 10000));
  c.set_window();
}

void read_gemma4(GgufConfig& c) {
  read_kinds(c);
  read_widths(c);
  read_rotations(c);
  c.set("hidden_size_per_layer_input", c.integer("embedding_length_per_layer_input", 0));
  const TensorInfo* table = c.file().find("model.embed_tokens_per_layer.weight");
  if (table != nullptr) c.set("vocab_size_per_layer_input", table->shape[0]);
  c.set("enable_moe_block", c.integer("expert_count", 0) > 0);
  for (std::string_view of_experts : {"expert_used_count", "expert_feed_forward_length"}) {
    c.ignore(of_experts);  // of dense files
  }
}

}  // namespace banyan
