// The interface of a loaded model: the states its layers keep, and the forward pass. Immutable once
// loaded; owns no sequences, pools or threads. The engine's thread runs it.
#pragma once

#include <vector>

#include "banyan/model_info.h"
#include "ops/step.h"
#include "tensor/tensor.h"

namespace banyan {

// What a forward pass returns, allocated in the step's arena. Logits are a separate call: a step
// that scores a long prompt computes them in blocks of rows, since 4,096 rows of 152k f32 logits
// would take 2.5 GB.
struct Outputs {
  Tensor hidden;                  // [rows, hidden], after the final norm
  std::vector<Tensor> auxiliary;  // [rows, hidden], inputs of each layer in Step::auxiliary_layers
};

class Model {
 public:
  virtual ~Model() = default;

  virtual Outputs forward(Step& s) const = 0;
  // hidden [rows, hidden] -> [rows, vocabulary], f32
  virtual Tensor logits(Step& s, Tensor hidden) const = 0;

  // Whether the MTP layer was loaded (Builder::prediction()).
  virtual bool predicts() const { return false; }
  // Runs the MTP layer; the step's token of a row is the one after the row's position. `hidden` is
  // Outputs::hidden for these positions, or what predict() returned for them. Returns [rows,
  // hidden], for which logits() scores the token after the row's token.
  virtual Tensor predict(Step& s, Tensor hidden) const;

  const ModelInfo& info() const { return info_; }

 protected:
  explicit Model(ModelInfo info) : info_(std::move(info)) {}

 private:
  ModelInfo info_;
};

}  // namespace banyan
