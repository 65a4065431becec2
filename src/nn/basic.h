// The small layers that every family uses: norm, embedding and output head.
#pragma once

#include <span>
#include <string_view>

#include "ops/linear.h"
#include "ops/rowwise.h"
#include "weights/builder.h"

namespace banyan {

class RmsNorm {
 public:
  // Over groups of `dim` columns: the whole row, or each head of it.
  RmsNorm(Builder b, int64_t dim, float eps)
      : weight_(b.vector({{"", dim}}, "weight", 1)), eps_(eps) {}

  Tensor operator()(Step& s, Tensor x) const { return rms_norm(s, x, weight_, eps_); }

 private:
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

// The token embedding and the output head, which may be one matrix.
class TokenEmbedding {
 public:
  // The matrix `embedding` below `embed_scope`, and `lm_head` below `head_scope`. One matrix for
  // both may have either name.
  TokenEmbedding(Builder embed_scope, std::string_view embedding, Builder head_scope,
                 int64_t vocabulary, int64_t dim, bool tied)
      : embed_(tied ? make_tied(embed_scope, embedding, head_scope, vocabulary, dim)
                    : embed_scope.matrix({{embedding, vocabulary}}, dim, MatrixUse::kLookUp)),
        head_(tied ? embed_ : head_scope.matrix({{"lm_head", vocabulary}}, dim)) {}

  Tensor embed(Step& s, const TokenId* tokens) const {  // of the step's rows -> [T, dim]
    return gather_rows(s, embed_, tokens, s.batch.rows());
  }
  Tensor logits(Step& s, Tensor hidden) const {  // [rows, dim] -> [rows, vocabulary]
    return linear(s, hidden, head_, Tensor());
  }

 private:
  static PackedMatrix make_tied(Builder embed_scope, std::string_view embedding, Builder head_scope,
                                int64_t vocabulary, int64_t dim) {
    bool head_alone = head_scope.has("lm_head.weight");
    return head_alone ? head_scope.matrix({{"lm_head", vocabulary}}, dim, MatrixUse::kBoth)
                      : embed_scope.matrix({{embedding, vocabulary}}, dim, MatrixUse::kBoth);
  }

  PackedMatrix embed_;
  PackedMatrix head_;
};

}  // namespace banyan
