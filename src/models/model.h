// The interface of a loaded model: the states its layers keep, and the forward pass. Immutable once
// loaded; owns no sequences, pools or threads. The engine's thread runs it.
#pragma once

#include "banyan/model_info.h"
#include "ops/step.h"
#include "tensor/tensor.h"

namespace banyan {

// What a forward pass returns, allocated in the step's arena. Logits are a separate call: a step
// that scores a long prompt computes them in blocks of rows, since 4,096 rows of 152k f32 logits
// would take 2.5 GB.
struct Outputs {
  Tensor hidden;     // [rows, hidden], after the final norm
  Tensor auxiliary;  // [rows, layers * hidden], inputs of Step::auxiliary_layers side by side
  Tensor features;   // [rows, any], what the first predict() after the step starts from
};

class Model {
 public:
  virtual ~Model() = default;

  virtual Outputs forward(Step& s) const = 0;
  // hidden [rows, hidden] -> [rows, vocabulary], f32
  virtual Tensor logits(Step& s, Tensor hidden) const = 0;

  // Embeddings of the step's tokens as they are stored, [rows, hidden].
  virtual Tensor embed(Step& s) const = 0;

  // Whether it drafts: it was loaded with its MTP layer (Builder::prediction()) or an EAGLE-3 head.
  virtual bool predicts() const { return false; }
  // Runs that layer; the step's token of a row is the one after the row's position. `from` is
  // Outputs::features for these positions, or what predict() returned for them. Returns [rows,
  // predicted_width()].
  virtual Tensor predict(Step& s, Tensor from) const;
  virtual int64_t predicted_width() const { return info_.hidden; }
  // Scores the token after the row's token, by what predict() returned -> [rows,
  // predicted_vocabulary()], f32.
  virtual Tensor predicted_logits(Step& s, Tensor predicted) const { return logits(s, predicted); }
  // The layer may score the first tokens of the vocabulary only.
  virtual int64_t predicted_vocabulary() const { return info_.vocabulary; }

  const ModelInfo& info() const { return info_; }
  // While loading: nothing may ask for logits.
  void set_headless() { info_.generates = false; }

 protected:
  explicit Model(ModelInfo info) : info_(std::move(info)) {}

 private:
  ModelInfo info_;
};

}  // namespace banyan
