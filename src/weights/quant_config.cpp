#include "weights/quant_config.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/quote.h"

namespace banyan {
namespace {

constexpr int64_t kGroupMax = 1 << 20;

void read_block(const ConfigFile& c, std::string_view key, QuantConfig& quant) {
  std::vector<int64_t> block = c.integers(key, 1, kGroupMax);
  c.expect(block.empty() || block.size() == 2, "{} has {} numbers, not 2", key, block.size());
  if (block.size() == 2) quant.blocks.push_back({block[0], block[1]});
}

// Inputs per scale; -1 in the file means all.
int64_t read_group(const ConfigFile& c, std::string_view key) {
  return std::max<int64_t>(0, c.integer_or(key, 128, -1, kGroupMax));
}

// DeepSeek and similar: weight_scale_inv per block, or one scale for the whole matrix.
void read_fp8(const ConfigFile& c, QuantConfig& quant) {
  c.only("fmt", {"e4m3", "float8_e4m3fn"});
  c.only("activation_scheme", {"dynamic", "static"});
  read_block(c, "weight_block_size", quant);
}

void read_compressed_group(const ConfigFile& group, QuantConfig& quant) {
  ConfigFile weights = group.object("weights");
  weights.only("num_bits", {4, 8});
  weights.only("type", {"int", "float"});
  weights.only("strategy", {"tensor", "channel", "group", "block", "tensor_group"});
  read_block(weights, "block_structure", quant);
}

void read_compressed(const ConfigFile& c, QuantConfig& quant) {
  c.only("format",
         {"dense", "naive-quantized", "float-quantized", "int-quantized", "pack-quantized",
          "nvfp4-pack-quantized", "mxfp4-pack-quantized", "mxfp8-quantized", "mixed-precision"});
  c.object("sparsity_config").only("format", {"dense"});
  c.only("quantization_status", {"compressed", "frozen"});
  ConfigFile groups = c.object("config_groups");
  for (const std::string& key : groups.keys()) {
    ConfigFile group = groups.object(key);
    read_compressed_group(group, quant);
  }
}

void read_awq(const ConfigFile& c, QuantConfig& quant) {
  c.only("bits", {4});
  c.only("version", {"gemm", "GEMM"});
  quant.bits = 4;
  quant.group = read_group(c, c.has("q_group_size") ? "q_group_size" : "group_size");
  quant.zero_points = c.flag_or("zero_point", true);
}

void read_gptq(const ConfigFile& c, QuantConfig& quant) {
  c.only("bits", {4, 8});
  c.only("checkpoint_format", {"gptq", "gptq_v2"});
  quant.bits = static_cast<int>(c.integer_or("bits", 4, 4, 8));
  quant.group = read_group(c, "group_size");
  quant.symmetric = c.flag_or("sym", true);
  quant.zeros_less_one = c.text_or("checkpoint_format", "gptq") == "gptq";
}

void read_modelopt(const ConfigFile& c, QuantConfig& quant) {
  c.only("quant_algo", {"FP8", "NVFP4"});
  quant.blocks = {};
}

// gpt-oss: the presence of codes and scales alone marks a quantised matrix.
void read_mxfp4(const ConfigFile&, QuantConfig&) {}

struct Method {
  std::string_view name;
  QuantMethod method;
  void (*read)(const ConfigFile&, QuantConfig&);
};

constexpr std::array kMethods = {
    Method{"fp8", QuantMethod::kFp8, read_fp8},
    Method{"compressed-tensors", QuantMethod::kCompressedTensors, read_compressed},
    Method{"awq", QuantMethod::kAwq, read_awq},
    Method{"gptq", QuantMethod::kGptq, read_gptq},
    Method{"modelopt", QuantMethod::kModelopt, read_modelopt},
    Method{"mxfp4", QuantMethod::kMxfp4, read_mxfp4},
};

}  // namespace

std::optional<std::string_view> stored_method(std::string_view name) {
  constexpr std::string_view kKernel = "_marlin";
  if (name.ends_with(kKernel)) name.remove_suffix(kKernel.size());
  for (std::string_view method : {"awq", "gptq", "compressed-tensors", "modelopt"}) {
    if (name == method) return method;
  }
  return std::nullopt;
}

Result<QuantConfig> read_quant_config(const ConfigFile& config) {
  QuantConfig quant;
  const char* key =
      config.has("quantization_config") ? "quantization_config" : "compression_config";
  if (!config.has(key)) return quant;
  ConfigFile c = config.object(key);
  std::string fallback = c.has("config_groups") ? "compressed-tensors" : "";
  quant.name = c.text_or("quant_method", fallback);
  TRY(config.finish());
  auto it = std::ranges::find(kMethods, quant.name, &Method::name);
  if (it == kMethods.end()) {
    std::vector<std::string_view> names;
    for (const Method& method : kMethods) names.push_back(method.name);
    return unsupported("config.json: {}.quant_method {} is not supported; supported: {}", key,
                       quote(quant.name), fmt::join(names, ", "));
  }
  quant.method = it->method;
  it->read(c, quant);
  config.ignore_object(key);  // the rest: how it was made, or activation rounding elsewhere
  TRY(config.finish());
  return quant;
}

}  // namespace banyan
