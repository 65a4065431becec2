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

// Token embedding and output head, tied or not. Tensor parallelism shards the vocabulary.
class TokenEmbedding {
 public:
  // Loads `embedding` from `embed_scope` and `lm_head` from `head_scope`. A tied matrix may be
  // stored under either name.
  TokenEmbedding(Builder embed_scope, std::string_view embedding, Builder head_scope,
                 int64_t vocabulary, int64_t dim, bool tied)
      : vocabulary_(vocabulary),
        units_(units_of_width(vocabulary, embed_scope.rank())),
        embed_(tied ? tied_matrix(embed_scope, embedding, head_scope, dim)
                    : embed_scope.matrix({embedding, vocabulary, Shard::rows(units_)}, dim,
                                         MatrixUse::kLookUp)),
        head_(tied ? embed_
                   : head_scope.matrix({"lm_head", vocabulary, Shard::rows(units_)}, dim)) {}

  // Looks up the step's tokens (`tokens` is in device memory) -> [T, dim].
  Tensor embed(Step& s, const TokenId* tokens) const {
    if (s.comm.rank().alone()) return gather_rows(s, embed_, tokens, s.batch.rows());
    return gather_rows_of_ranks(s, embed_, s.batch.tokens, vocabulary_, units_);
  }
  Tensor logits(Step& s, Tensor hidden) const {  // [rows, dim] -> [rows, vocabulary]
    return gather_columns(s, linear(s, hidden, head_, Tensor()), units_);
  }

 private:
  PackedMatrix tied_matrix(Builder embed_scope, std::string_view embedding, Builder head_scope,
                           int64_t dim) const {
    bool head_alone = head_scope.has("lm_head.weight");
    Builder scope = head_alone ? head_scope : embed_scope;
    std::string_view name = head_alone ? "lm_head" : embedding;
    return scope.matrix({name, vocabulary_, Shard::rows(units_)}, dim, MatrixUse::kBoth);
  }

  int64_t vocabulary_;
  int64_t units_;  // sharding units of the vocabulary
  PackedMatrix embed_;
  PackedMatrix head_;
};

}  // namespace banyan
