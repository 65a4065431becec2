// The cost of tokens, by the model's own shapes: bytes read from memory, and operations.
#pragma once

#include <array>
#include <cstdint>

#include "banyan/engine.h"
#include "kernels/operand.h"

namespace banyan {

// Operations are those of products, two for each: of weights and of attention. Bytes are the
// weights that the tokens pass through, once for all of them, and the states that they read.
struct Work {
  double bytes = 0;
  std::array<double, kOperands> operations = {};  // by the type that products may round to

  double all_operations() const;
  // At these rates for each kind of operation.
  double seconds(const std::array<double, kOperands>& operations_per_s) const;
};

// `sequences` prompts of `tokens` tokens each, of which the last passes through the output head.
// States are not counted: a prompt's fit into a cache, or it is bound by its arithmetic.
Work prompt_work(const EngineInfo& info, int64_t sequences, int64_t tokens);

// One step of `sequences` sequences, each with one token that sees `context` tokens, itself
// included. Experts are counted as often as even routing meets them.
Work decode_work(const EngineInfo& info, int64_t sequences, double context);

}  // namespace banyan
