// A model family: which states its layers keep and how a step runs through them. Immutable once
// loaded; owns no sequence, no pool and no thread.
#pragma once

#include <vector>

#include "banyan/model_info.h"
#include "ops/step.h"
#include "tensor/tensor.h"

namespace banyan {

// What a step computed, in its arena. Logits are a second call, because a step that scores a long
// prompt runs its output head in blocks of rows: 4,096 rows of 152k f32 logits would be 2.5 GB.
struct Outputs {
  Tensor hidden;                  // [rows, hidden], after the final norm
  std::vector<Tensor> auxiliary;  // [rows, hidden] entering each of Step::auxiliary_layers
};

class Model {
 public:
  virtual ~Model() = default;

  virtual Outputs forward(Step& s) const = 0;
  // hidden [rows, hidden] -> [rows, vocabulary], f32
  virtual Tensor logits(Step& s, Tensor hidden) const = 0;

  // Whether it was loaded with a layer that predicts a further token (Builder::prediction()).
  virtual bool predicts() const { return false; }
  // That layer over the step's rows, whose tokens are those after their positions: `hidden` is
  // what Outputs has for the positions, or what this made of them. -> [rows, hidden], of which
  // logits() makes those of the token after the rows'.
  virtual Tensor predict(Step& s, Tensor hidden) const;

  const ModelInfo& info() const { return info_; }

 protected:
  explicit Model(ModelInfo info) : info_(std::move(info)) {}

 private:
  ModelInfo info_;
};

}  // namespace banyan
