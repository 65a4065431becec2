// Plain data next to a Batch: the parameters for drawing from its logit rows, and the results.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ops/rowwise.h"
#include "ops/step.h"
#include "tensor/device.h"

namespace banyan {

// rows[i] belongs to Batch::logit_rows[i]; its ranges refer to the arrays below. Reused between
// steps, like Batch.
struct DrawBatch {
  std::vector<DrawRow> rows;
  std::vector<uint32_t> masks;  // [..., (vocabulary + 31) / 32]
  std::vector<TokenCount> counts;
  std::vector<TokenBias> biases;
  std::vector<TokenId> chosen;
  int64_t tops = 0;  // log-probabilities to report, over all rows

  void clear();
};

struct DrawResults {
  std::vector<DrawResult> rows;    // one per row of DrawBatch
  std::vector<TokenLogprob> tops;  // at DrawRow::tops_begin
  // Of the step: the hidden states of Batch::hidden_rows, [hidden_rows, hidden], after the last
  // norm.
  std::span<const float> hidden;
};

// A DrawBatch in memory that kernels can read, with room for results: the host's arrays if the
// device can access them, otherwise one block of the device.
class DrawImage {
 public:
  explicit DrawImage(const DeviceQueue& queue) : queue_(queue) {}

  // For all rows; valid until the next call, and while `draws` and `results` live.
  const DrawArgs& load(const DrawBatch& draws, DrawResults& results);
  // On the device, of the last load(): its results, and its rows, which kernels may change.
  const DrawResult* drawn() const { return args_.results; }
  DrawRow* rows() const { return const_cast<DrawRow*>(args_.draws); }

 private:
  friend class DrawDownload;
  void load_block(const DrawBatch& draws, const DrawResults& results);

  const DeviceQueue& queue_;
  DeviceBlock block_;
  DrawArgs args_;
};

// Brings results to the host, while the queue goes on.
class DrawDownload {
 public:
  explicit DrawDownload(const DeviceQueue& queue) : queue_(queue) {}

  // Enqueues the copy of what was drawn from the image's last load().
  void start(const DrawImage& image, const DrawResults& results);
  // Call it once the queue is there; `results` are those of that load().
  void finish(DrawResults& results) const;

 private:
  const DeviceQueue& queue_;
  HostBlock block_;
};

// Draws from logits [T, vocabulary] of the rows from `first` on.
void draw(Step& s, Tensor logits, const LogitStats& stats, const DrawArgs& all, int64_t first);

// The tokens of the step's rows, with placeholders replaced by the tokens that the previous step
// drew. On the device; valid as long as the step's tensors.
const TokenId* known_tokens(Step& s);

}  // namespace banyan
