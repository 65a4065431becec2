// What the rows of a Batch that are asked for logits are drawn with, next to it and as plain as it
// is; and what comes of it.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/rowwise.h"
#include "ops/step.h"
#include "tensor/device.h"

namespace banyan {

// rows[i] belongs to Batch::logit_rows[i]; its parts lie in the arrays after it. Reused from step
// to step, as Batch is.
struct DrawBatch {
  std::vector<DrawRow> rows;
  std::vector<uint32_t> masks;  // [..., (vocabulary + 31) / 32]
  std::vector<TokenCount> counts;
  std::vector<TokenBias> biases;
  std::vector<TokenId> chosen;
  int64_t tops = 0;  // of all rows together: log-probabilities to report

  void clear();
};

struct DrawResults {
  std::vector<DrawResult> rows;    // those of DrawBatch
  std::vector<TokenLogprob> tops;  // where DrawRow::tops_begin says
};

// A DrawBatch where kernels read it, and room for what they draw: in the arrays of the host where
// its memory is the device's, else in one block of the device.
class DrawImage {
 public:
  explicit DrawImage(const DeviceQueue& queue) : queue_(queue) {}

  // For all rows; valid until the next call, and while `draws` and `results` are.
  const DrawArgs& load(const DrawBatch& draws, DrawResults& results);
  // Results may be read once the queue is synchronised.
  void download(DrawResults& results) const;
  // On the device, of the rows of the last load().
  const DrawResult* drawn() const { return args_.results; }

 private:
  void load_block(const DrawBatch& draws, const DrawResults& results);

  const DeviceQueue& queue_;
  DeviceBlock block_;
  DrawArgs args_;
};

// Draws from logits [T, vocabulary], which are of the rows from `first` on.
void draw(Step& s, Tensor logits, const LogitStats& stats, const DrawArgs& all, int64_t first);

// The tokens of the step's rows, with those that the step before drew in the places that stand for
// them. On the device; valid as long as tensors of the step are.
const TokenId* known_tokens(Step& s);

}  // namespace banyan
