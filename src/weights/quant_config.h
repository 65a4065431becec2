// The quantization settings of config.json: `quantization_config` or `compression_config`.
//
// Which matrices are quantised, and with which groups, is determined from the tensors
// (weights/stored_matrix.h), since tools name the excluded modules differently. This only supplies
// facts that tensors do not contain: the packing order, and the meaning of zero points.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
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
  std::string name = "none";       // the method, as spelled in config.json
  std::vector<QuantBlock> blocks;  // possible block sizes of scales
  int bits = 0;                    // AWQ, GPTQ
  int64_t group = 0;               // AWQ, GPTQ: inputs per scale; 0: all
  bool symmetric = false;          // GPTQ: every zero point is the midpoint
  bool zeros_less_one = false;     // GPTQ version 1: zero points are stored minus 1
  bool zero_points = true;         // AWQ: has zero points
};

// The method of a checkpoint whose name vLLM and SGLang take for --quantization, although the
// checkpoint says it, too: "awq_marlin" is "awq". Null for other names.
std::optional<std::string_view> stored_method(std::string_view name);

// kUnsupported names an unknown method, format or variant. Errors of single values are also
// recorded in `config`. Empty if the key is absent.
Result<QuantConfig> read_quant_config(const ConfigFile& config);

}  // namespace banyan
