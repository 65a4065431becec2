// The small layers that every family uses: RMSNorm, token embedding and output head. Immutable once
// built, as all layers of nn/ are; weights belong to the WeightStore.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/signed.h"
#include "ops/linear.h"
#include "ops/ranks.h"
#include "ops/rowwise.h"
#include "weights/builder.h"

namespace banyan {

// How a checkpoint stores a norm's weight.
enum class NormWeight : uint8_t {
  kPlain,
  kLessOne,  // weight - 1 (Gemma)
  kNone,     // no weight: the factor is 1
};

class RmsNorm {
 public:
  // Normalises groups of `dim` columns: a whole row, or each head.
  RmsNorm(Builder b, int64_t dim, float eps, NormWeight weight = NormWeight::kPlain)
      : weight_(weight_of(b, {"", dim}, weight)), eps_(eps) {}

  Tensor operator()(Step& s, Tensor x) const { return rms_norm(s, x, weight_, eps_); }
  const Tensor& weight() const { return weight_; }

 private:
  static Tensor weight_of(const Builder& b, const MatrixPart& part, NormWeight weight) {
    if (weight == NormWeight::kNone) {
      return b.constant({part.rows}, filled(part.rows, 1.0f));
    }
    bool less_one = weight == NormWeight::kLessOne;
    return b.vector({part}, "weight", less_one ? 0 : 1, less_one ? 1 : 0);
  }

  Tensor weight_;
  float eps_;
};

// RMSNorm over groups of columns, with a weight per column.
class GroupRmsNorm {
 public:
  GroupRmsNorm(Builder b, int64_t dim, int64_t groups, float eps)
      : weight_(b.vector({{"", dim}}, "weight", 1)), groups_(groups), eps_(eps) {}

  Tensor operator()(Step& s, Tensor x) const {
    return group_rms_norm(s, x, weight_, groups_, eps_);
  }

 private:
  Tensor weight_;
  int64_t groups_;
  float eps_;
};

// A matrix's scope and name.
struct MatrixName {
  Builder scope;
  std::string_view name;
};

// Token embedding and output head, tied or not. Tensor parallelism shards the vocabulary.
//
// If an MTP layer drafts, it has a head of its own: the rows of the first
// Builder::draft_vocabulary() tokens, again (FR-Spec: Zhao et al. 2025, arXiv:2502.14856).
// Tokenizers number their tokens by how frequent these are. A draft is verified whatever its
// tokens, so a head that lacks the rare ones costs a few drafts, but saves most of what a proposal
// reads.
class TokenEmbedding {
 public:
  // Loads `embedding` from `embed_scope` and `lm_head` from `head_scope`. A tied matrix may be
  // stored under either name.
  TokenEmbedding(Builder embed_scope, std::string_view embedding, Builder head_scope,
                 int64_t vocabulary, int64_t dim, bool tied)
      : TokenEmbedding({embed_scope, embedding},
                       !tied || head_scope.has("lm_head.weight")
                           ? MatrixName{head_scope, "lm_head"}
                           : MatrixName{embed_scope, embedding},
                       vocabulary, dim, tied) {}

  // Looks up the step's tokens (`tokens` is in device memory) -> [T, dim].
  Tensor embed(Step& s, const TokenId* tokens) const {
    int64_t rows = s.batch.rows();
    if (s.comm.rank().alone()) return gather_rows(s, embed_, tokens, rows);
    return gather_rows_of_ranks(s, embed_, {tokens, as_size(rows)}, vocabulary_, units_);
  }
  Tensor logits(Step& s, Tensor hidden) const {  // [rows, dim] -> [rows, vocabulary]
    return gather_columns(s, linear(s, hidden, head_, Tensor()), units_);
  }

  int64_t draft_vocabulary() const { return draft_head_.empty() ? vocabulary_ : draft_head_.rows; }
  Tensor draft_logits(Step& s, Tensor hidden) const {  // -> [rows, draft_vocabulary()]
    return draft_head_.empty() ? logits(s, hidden) : linear(s, hidden, draft_head_, Tensor());
  }

 private:
  TokenEmbedding(const MatrixName& embedding, const MatrixName& head, int64_t vocabulary,
                 int64_t dim, bool tied)
      : vocabulary_(vocabulary),
        units_(units_of_width(vocabulary, head.scope.rank())),
        embed_(tied ? head.scope.matrix(part(head.name), dim, MatrixUse::kBoth)
                    : embedding.scope.matrix(part(embedding.name), dim, MatrixUse::kLookUp)),
        head_(tied ? embed_ : head.scope.matrix(part(head.name), dim)) {
    int64_t drafted = head.scope.prediction() ? head.scope.draft_vocabulary() : 0;
    if (drafted == 0 || drafted >= vocabulary || !head.scope.rank().alone()) return;
    draft_head_ = head.scope.first_rows(part(head.name), drafted, dim);
  }

  MatrixPart part(std::string_view name) const { return {name, vocabulary_, Shard::rows(units_)}; }

  int64_t vocabulary_;
  int64_t units_;  // sharding units of the vocabulary
  PackedMatrix embed_;
  PackedMatrix head_;
  PackedMatrix draft_head_;  // empty: `head_`
};

}  // namespace banyan
