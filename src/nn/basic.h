// The small layers that every family uses: norm, embedding and output head.
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

// How a checkpoint stores the weight of a norm.
enum class NormWeight : uint8_t {
  kPlain,
  kLessOne,  // the factor less one (Gemma)
  kNone,     // there is none: the factor is 1
};

class RmsNorm {
 public:
  // Over groups of `dim` columns: the whole row, or each head of it.
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

// Over groups of columns, each with weights of its own.
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

// The token embedding and the output head, which may be one matrix. Ranks divide the vocabulary.
class TokenEmbedding {
 public:
  // The matrix `embedding` below `embed_scope`, and `lm_head` below `head_scope`. One matrix for
  // both may have either name.
  TokenEmbedding(Builder embed_scope, std::string_view embedding, Builder head_scope,
                 int64_t vocabulary, int64_t dim, bool tied)
      : vocabulary_(vocabulary),
        units_(units_of_width(vocabulary, embed_scope.rank())),
        embed_(tied ? tied_matrix(embed_scope, embedding, head_scope, dim)
                    : embed_scope.matrix({{embedding, vocabulary, Shard::rows(units_)}}, dim,
                                         MatrixUse::kLookUp)),
        head_(tied ? embed_
                   : head_scope.matrix({{"lm_head", vocabulary, Shard::rows(units_)}}, dim)) {}

  // Of the step's rows; `tokens` is theirs on the device -> [T, dim].
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
    return scope.matrix({{name, vocabulary_, Shard::rows(units_)}}, dim, MatrixUse::kBoth);
  }

  int64_t vocabulary_;
  int64_t units_;  // of it, that ranks divide
  PackedMatrix embed_;
  PackedMatrix head_;
};

}  // namespace banyan
