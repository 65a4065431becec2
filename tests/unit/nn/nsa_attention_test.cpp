// Native sparse attention against its definition in f64, and against itself, bit for bit, with
// other chunks, page sizes and numbers of threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "models/decoder.h"
#include "nn/nsa_attention.h"
#include "support/drive.h"
#include "support/safetensors.h"
#include "support/shared.h"
#include "support/value_or_abort.h"

namespace banyan::test::nsa_attention_test {
namespace {

constexpr int64_t kVocabulary = 61, kHidden = 20, kHeads = 4, kKvHeads = 2, kDim = 8, kTokens = 150;
constexpr NsaConfig kNsa = {.hidden = kHidden,
                            .q_heads = kHeads,
                            .kv_heads = kKvHeads,
                            .head_dim = kDim,
                            .shape = {.pool_tokens = 8, .stride = 4, .block_tokens = 8, .top_k = 6},
                            .window_tokens = 11};

// A model of this mixer alone.
class Layer {
 public:
  explicit Layer(Builder b) : nsa_(b, kNsa) {}
  Tensor operator()(Step& s, Tensor x, const Rotation& rotation) const {
    return nsa_(s, x, rotation);
  }

 private:
  NsaAttention nsa_;
};

Result<std::unique_ptr<Model>> load_alone(const ConfigFile& config, Builder b) {
  config.ignore({"dtype"});
  TRY(config.finish());
  DecoderConfig decoder = {.vocabulary = kVocabulary,
                           .hidden = kHidden,
                           .layers = 1,
                           .eps = 1e-6f,
                           .rope = {.rotary_dim = kDim}};
  ModelInfo info{.architecture = "NsaForTests",
                 .vocabulary = kVocabulary,
                 .hidden = kHidden,
                 .context_length_tokens = 256,
                 .layers = {{"nsa", "none"}}};
  return std::make_unique<DecoderModel<Layer>>(b, std::move(info), decoder,
                                               [](Builder scope, int64_t) { return Layer(scope); });
}
constexpr Family kFamilies[] = {{"NsaForTests", load_alone}};

using Values = std::vector<double>;

class Weights {
 public:
  explicit Weights(const TemporaryFolder& folder) {
    const std::string layer = "model.layers.0.";
    add("model.embed_tokens.weight", {kVocabulary, kHidden}, 1);
    add("model.norm.weight", {kHidden}, 1);
    add("lm_head.weight", {kVocabulary, kHidden}, 1);
    add(layer + "q_proj.weight", {kHeads * kDim, kHidden}, 0.5);
    for (const char* branch : {"compressed", "selected", "window"}) {
      std::string scope = layer + branch + ".";
      add(scope + "k_proj.weight", {kKvHeads * kDim, kHidden}, 0.5);
      add(scope + "v_proj.weight", {kKvHeads * kDim, kHidden}, 0.5);
      add(scope + "g_proj.weight", {kHeads, kHidden}, 0.3);
    }
    for (const char* what : {"keys", "values"}) {
      std::string scope = layer + "compressed.pool_" + what + ".";
      add(scope + "weight", {kNsa.shape.pool_tokens, kDim}, 0.4);
      add(scope + "bias", {kDim}, 0.2);
    }
    add(layer + "o_proj.weight", {kHidden, kHeads * kDim}, 0.3);
    folder.write("model.safetensors", safetensors_file(tensors_));
    folder.write("config.json", R"({"architectures": ["NsaForTests"], "dtype": "float32"})");
  }
  const std::vector<float>& operator[](const std::string& name) const { return values_.at(name); }
  const std::vector<float>& layer(const std::string& name) const {
    return values_.at("model.layers.0." + name);
  }

 private:
  void add(const std::string& name, std::vector<int64_t> shape, float scale) {
    int64_t count = std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
    std::vector<float>& values = values_[name];
    for (int64_t i = 0; i < count; ++i) {
      random_ = random_ * 6364136223846793005u + 1442695040888963407u;
      values.push_back(scale * (static_cast<float>(random_ >> 40) / 8388608.0f - 1));
    }
    std::string bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    tensors_.push_back({name, "F32", std::move(shape), std::move(bytes)});
  }

  std::map<std::string, std::vector<float>> values_;
  std::vector<TestTensor> tensors_;
  uint64_t random_ = 1;
};

std::vector<TokenId> some_tokens() {
  std::vector<TokenId> tokens;
  for (int64_t t = 0; t < kTokens; ++t) {
    tokens.push_back(static_cast<TokenId>(t * t * 7 % kVocabulary));
  }
  return tokens;
}

// The mixer in f64, as the paper writes it.
class Oracle {
 public:
  Oracle(const Weights& weights, const std::vector<TokenId>& tokens) : w_(weights) {
    for (TokenId token : tokens) {
      auto row = w_["model.embed_tokens.weight"].begin() + token * kHidden;
      x_.emplace_back(row, row + kHidden);
    }
    for (const char* what : {"keys", "values"}) pool(what);
    for (const char* branch : {"selected", "window"}) {
      keys_[branch] = project(std::string(branch) + ".k_proj", true);
      values_[branch] = project(std::string(branch) + ".v_proj", false);
    }
    q_ = project("q_proj", false);
    turned_q_ = project("q_proj", true);
  }

  Values row(int64_t t) const {
    Values mixed(kHeads * kDim);
    for (int64_t group = 0; group < kKvHeads; ++group) {
      Values shares(t / kNsa.shape.block_tokens + 1);
      for (int64_t h = group * 2; h < group * 2 + 2; ++h) compress(t, h, shares, mixed);
      std::vector<bool> chosen = choose(t, shares);
      for (int64_t h = group * 2; h < group * 2 + 2; ++h) {
        attend("selected", t, h, mixed,
               [&](int64_t j) { return chosen[j / kNsa.shape.block_tokens]; });
        attend("window", t, h, mixed, [&](int64_t j) { return j > t - kNsa.window_tokens; });
      }
    }
    return times(w_.layer("o_proj.weight"), mixed);
  }

 private:
  static Values times(const std::vector<float>& matrix, const Values& x) {
    Values y(matrix.size() / x.size());
    for (size_t i = 0; i < matrix.size(); ++i) y[i / x.size()] += matrix[i] * x[i % x.size()];
    return y;
  }
  std::vector<Values> project(const std::string& name, bool turn) const {
    std::vector<Values> rows;
    for (size_t t = 0; t < x_.size(); ++t) {
      rows.push_back(times(w_.layer(name + ".weight"), x_[t]));
      for (size_t i = 0; i < rows.back().size() && turn; ++i) {
        size_t c = i % kDim;
        if (c >= kDim / 2) continue;
        double angle = static_cast<double>(t) * std::pow(10000.0, -2.0 * c / kDim);
        double a = rows.back()[i], b = rows.back()[i + kDim / 2];
        rows.back()[i] = a * std::cos(angle) - b * std::sin(angle);
        rows.back()[i + kDim / 2] = b * std::cos(angle) + a * std::sin(angle);
      }
    }
    return rows;
  }
  void pool(const std::string& what) {
    auto rows = project(what == "keys" ? "compressed.k_proj" : "compressed.v_proj", false);
    const auto& weight = w_.layer("compressed.pool_" + what + ".weight");
    const auto& bias = w_.layer("compressed.pool_" + what + ".bias");
    std::vector<Values>& pooled = what == "keys" ? keys_["compressed"] : values_["compressed"];
    for (int64_t first = 0; first + kNsa.shape.pool_tokens <= kTokens; first += kNsa.shape.stride) {
      Values entry;
      for (int64_t i = 0; i < kKvHeads * kDim; ++i) {
        entry.push_back(bias[i % kDim]);
        for (int64_t n = 0; n < kNsa.shape.pool_tokens; ++n) {
          entry.back() += weight[n * kDim + i % kDim] * rows[first + n][i];
        }
      }
      pooled.push_back(entry);
    }
  }

  // Adds the gated attention of head h to the keys that are seen; returns the weights.
  template <class Sees>
  Values attend_to(const std::string& branch, const Values& q, int64_t count, int64_t t, int64_t h,
                   Values& mixed, const Sees& sees) const {
    Values p(count);
    double sum = 0;
    for (int64_t j = 0; j < count; ++j) {
      if (!sees(j)) continue;
      double dot = 0;
      for (int64_t c = 0; c < kDim; ++c) {
        dot += q[h * kDim + c] * keys_.at(branch)[j][h / 2 * kDim + c];
      }
      sum += p[j] = std::exp(dot / std::sqrt(double{kDim}));
    }
    double gate = 1 / (1 + std::exp(-times(w_.layer(branch + ".g_proj.weight"), x_[t])[h]));
    for (int64_t j = 0; j < count; ++j) {
      p[j] /= sum > 0 ? sum : 1;
      for (int64_t c = 0; c < kDim; ++c) {
        mixed[h * kDim + c] += gate * p[j] * values_.at(branch)[j][h / 2 * kDim + c];
      }
    }
    return p;
  }
  template <class Sees>
  void attend(const std::string& branch, int64_t t, int64_t h, Values& mixed,
              const Sees& sees) const {
    attend_to(branch, turned_q_[t], t + 1, t, h, mixed, sees);
  }
  // Equations 7 and 9: a block gets the weight of an entry for each stride that they share.
  void compress(int64_t t, int64_t h, Values& shares, Values& mixed) const {
    const auto& [pool, stride, block, top_k, first, last] = kNsa.shape;
    int64_t count = t + 1 < pool ? 0 : (t + 1 - pool) / stride + 1;
    Values p = attend_to("compressed", q_[t], count, t, h, mixed, [](int64_t) { return true; });
    for (int64_t j = 0; j < count; ++j) {
      for (int64_t n = 0; n < pool / stride; ++n) shares[(j + n) * stride / block] += p[j];
    }
  }
  static std::vector<bool> choose(int64_t t, const Values& shares) {
    int64_t own = t / kNsa.shape.block_tokens, top_k = kNsa.shape.top_k;
    std::vector<int64_t> order(own + 1);
    std::iota(order.begin(), order.end(), 0);
    auto forced = [&](int64_t b) { return b == 0 || b >= own - 1; };
    std::ranges::stable_sort(order, [&](int64_t a, int64_t b) {
      if (forced(a) != forced(b)) return forced(a);
      return shares[a] > shares[b];
    });
    std::vector<bool> chosen(own + 1);
    for (int64_t i = 0; i < std::min(own + 1, top_k); ++i) chosen[order[i]] = true;
    return chosen;
  }

  const Weights& w_;
  std::vector<Values> x_, q_, turned_q_;
  std::map<std::string, std::vector<Values>> keys_, values_;  // of a branch
};

EngineConfig config_of(const TemporaryFolder& folder, const std::string& kernels) {
  return {.model_path = folder.path(),
          .kernels = kernels,
          .threads = 1,
          .page_size_tokens = 16,
          .total_tokens_max = 256,
          .running_max = 2,
          .chunked_prefill_tokens = 256};
}

std::unique_ptr<Runner> load_nsa(const EngineConfig& config) {
  return value_or_abort(Runner::load(config, {}, kFamilies));
}

TEST(NsaAttention, IsNearItsDefinitionInF64) {
  TemporaryFolder folder;
  Weights weights(folder);
  std::vector<TokenId> tokens = some_tokens();
  Oracle oracle(weights, tokens);
  for (const std::string& kernels : all_kernels()) {
    std::unique_ptr<Runner> runner = load_nsa(config_of(folder, kernels));
    std::vector<int32_t> pages(16);
    std::iota(pages.begin(), pages.end(), 0);
    Batch batch = one_span(runner->classes(), tokens, 0, kTokens, pages);
    std::vector<int> layers = {0, 1};
    std::vector<float> out = runner->run_hidden(batch, layers).layers[1];
    ASSERT_EQ(out.size(), static_cast<size_t>(kTokens * kHidden));
    for (int64_t t = 0; t < kTokens; ++t) {
      Values exact = oracle.row(t);
      for (int64_t c = 0; c < kHidden; ++c) {
        ASSERT_NEAR(out[t * kHidden + c], exact[c], 1e-4) << kernels << " row " << t;
      }
    }
  }
}

TEST(NsaAttention, ChunksPagesAndThreadsChangeNoBit) {
  TemporaryFolder folder;
  Weights weights(folder);
  std::vector<TokenId> tokens = some_tokens();
  for (const std::string& kernels : all_kernels()) {
    EngineConfig config = config_of(folder, kernels);
    std::vector<float> whole = all_logits(*load_nsa(config), tokens, 256);
    for (int page : {1, 2, 4, 64, 1024}) {
      config.page_size_tokens = page;
      config.total_tokens_max = std::max(2 * page, 256);
      config.threads = page == 4 ? 3 : 1;
      std::unique_ptr<Runner> runner = load_nsa(config);
      for (int chunk : {1, page, 7, 8, 9}) {
        EXPECT_TRUE(same_bits(all_logits(*runner, tokens, chunk), whole))
            << kernels << ", pages of " << page << ", chunks of " << chunk;
      }
    }
  }
}

}  // namespace
}  // namespace banyan::test::nsa_attention_test
