// What config.json says about how a checkpoint's matrices are quantised: `quantization_config`, or
// `compression_config`.
//
// Which matrix is quantised, and with which groups, is read off the tensors themselves
// (weights/stored_matrix.h): lists of modules that are left out differ between tools in how they
// name modules, but a module's tensors cannot lie about what they are. From here come only the
// facts that no tensor has: whose packing order it is, and what a zero point means.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "banyan/status.h"
#include "weights/files/config_file.h"

namespace banyan {

enum class QuantMethod : uint8_t {
  kNone,
  kFp8,
  kCompressedTensors,
  kAwq,
  kGptq,
  kModelopt,
  kMxfp4
};

struct QuantBlock {
  int64_t rows = 0, columns = 0;
};

struct QuantConfig {
  QuantMethod method = QuantMethod::kNone;
  std::string name = "none";       // of the method, as config.json spells it
  std::vector<QuantBlock> blocks;  // in which scales may lie
  int bits = 0;                    // AWQ, GPTQ
  int64_t group = 0;               // AWQ, GPTQ: inputs that share a scale; 0: all
  bool symmetric = false;          // GPTQ: every zero point is the middle
  bool zeros_less_one = false;     // GPTQ version 1: a zero point is stored less 1
  bool zero_points = true;         // AWQ: there are any
};

// kUnsupported: a method, format or variant that is not read, named. Problems with single values
// stick to `config` too. None when the key is absent.
Result<QuantConfig> read_quant_config(const ConfigFile& config);

}  // namespace banyan
