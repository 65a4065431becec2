// A tiny model family that only tests can load: its layers keep states of every class, so that it
// stands for any mixture. About 20,000 random weights.
#pragma once

#include <memory>
#include <span>

#include "banyan/engine.h"
#include "engine/runner.h"
#include "models/registry.h"
#include "support/shared.h"

namespace banyan::test {

// One layer of each kind that is on, in this order.
struct HybridLayers {
  bool full = true;       // attention to all positions
  bool window = true;     // attention to a window
  bool lightning = true;  // linear attention
  bool delta = true;      // the delta rule, with convolutions
  // Classes of states that no family has, and advisory ones: support/models/made_up_mixers.h.
  bool near = false;         // attention to a second window, a half as long
  bool block_means = false;  // of blocks of 4 tokens
  bool notes = false;
  bool nsa = false;  // native sparse attention: blocks of 8, entries of 8 by strides of 4
  int window_tokens = 12;
  int chunk_tokens = 8;  // of the prefill form
  int context_tokens = 96;

  bool recurrent() const { return lightning || delta; }
};

// The list of families that has "BanyanHybridForTests" alone.
std::span<const Family> hybrid_families();

// Writes config.json into `folder` and returns what loads it: random weights, f32, pages of 4
// tokens, one thread.
EngineConfig hybrid_config(const TemporaryFolder& folder, const HybridLayers& layers = {});

// Abort when loading fails. The folder is not needed afterwards.
std::unique_ptr<Runner> load_hybrid_runner(const EngineConfig& config);
std::unique_ptr<Engine> load_hybrid_engine(const EngineConfig& config);

}  // namespace banyan::test
