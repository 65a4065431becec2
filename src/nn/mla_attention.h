// Multi-head latent attention (DeepSeek-AI 2024, arXiv:2405.04434): the queries of all heads attend
// to one latent row per token, and only that row is cached. The absorbed form is used at every
// position, or the expanded form at positions of a prompt: it computes each head's keys and values
// from the latents again. That takes a third of the arithmetic in long prompts, and a second copy
// of the matrix for keys.
//
// Ranks divide the heads; each keeps the latents of all positions.
//
// Families differ only in configuration: a low-rank query, rotary positions (not in Kimi-Linear),
// scale corrections (LongCat), an output gate (Ling 3), queries scaled by position (Mistral 4).
#pragma once

#include <optional>
#include <string_view>

#include "nn/basic.h"
#include "nn/linear.h"
#include "nn/token_index.h"
#include "ops/attention.h"
#include "ops/latent_attention.h"

namespace banyan {

enum class MlaGate : uint8_t {
  kNone,
  kHeads,     // one sigmoid for each head
  kElements,  // one for each element of each head
};

struct MlaConfig {
  int64_t hidden = 0, heads = 0;
  int64_t query_rank = 0;  // 0: the query is a single projection
  int64_t rank = 0;
  int64_t nope_dim = 0, rope_dim = 0, value_dim = 0;
  float eps = 1e-6f;   // of the norms of the query and of the latent
  bool rotary = true;  // false: the rope_dim columns stay as they are
  RopeLayout layout = RopeLayout::kInterleaved;
  double score_factor = 1;    // on the scores, on top of 1 / sqrt(nope_dim + rope_dim)
  double query_factor = 1;    // on the query
  double latent_factor = 1;   // on the latent, from which keys and values are computed
  PositionScale query_scale;  // of queries
  MlaGate gate = MlaGate::kNone;
  bool bias = false;  // of the low-rank query, the latent row and the output
  std::string_view output_name = "o_proj";
  bool expanded_prefill = false;  // the form used for positions below prompt_tokens
  // An index that chooses which tokens a row attends to; absent: all. With expanded prefill, rows
  // of prompts that see no more tokens than the index chooses are expanded, later ones absorbed.
  std::optional<TokenIndexConfig> index;
};

class MlaAttention {
 public:
  MlaAttention(Builder b, const MlaConfig& c);

  // x [T, hidden] -> [T, hidden]
  Tensor operator()(Step& s, Tensor x, const Rotation& rotation) const;

 private:
  void derive(Builder b, const MlaConfig& c);
  // `selected`: the keys that each row attends to; empty: all.
  void absorbed(Step& s, Tensor q, const Rotation& rotation, const SpanList& spans,
                const SelectedKeys& selected, Tensor out) const;
  void expanded(Step& s, Tensor q, const Rotation& rotation, const SpanList& spans,
                Tensor out) const;
  // Splits prompts into rows that see all keys and rows that select.
  void attend_prompt(Step& s, Tensor q, const Rotation& rotation, const SelectedKeys& selected,
                     Tensor out) const;
  // Each row in the form of its position.
  void attend(Step& s, Tensor q, const Rotation& rotation, Tensor out) const;

  LatentShape shape_;
  bool rotary_;
  float eps_;
  PositionScale query_scale_;
  Linear input_;  // the query, or the input of its second projection; then the latent row
  std::optional<RmsNorm> query_norm_;
  std::optional<Linear> query_;
  Tensor latent_norm_;          // [rank]
  PackedMatrix keys_, values_;  // of each head
  PackedMatrix expanded_keys_;  // of each head; empty: absorbed at every position
  std::optional<Linear> gate_;
  Linear output_;
  StateId latents_;
  int64_t selected_max_ = 0;  // keys that a row selects; 0: all
  std::optional<TokenIndex> index_;
};

}  // namespace banyan
