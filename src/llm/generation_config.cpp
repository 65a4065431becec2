#include "llm/generation_config.h"

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "base/gguf.h"
#include "weights/files/config_file.h"

namespace banyan {
namespace {

constexpr int64_t kTopKMax = 1 << 30;

// The parameters under "general.sampling.", with llama.cpp's names.
Result<SamplingParams> read_gguf_sampling(const std::string& path) {
  MappedFile file = TRY(MappedFile::open(path));
  GgufPairs pairs = TRY(GgufPairs::parse(file.bytes(), path));
  SamplingParams sampling;
  auto number = [&](std::string_view name, double fallback, double min,
                    double max) -> Result<double> {
    std::string key = fmt::format("general.sampling.{}", name);
    double value = TRY(pairs.number(key)).value_or(fallback);
    if (value >= min && value <= max) return value;
    return corrupt("{}: {} is {}, not a number from {} to {}", path, key, value, min, max);
  };
  sampling.temperature = TRY(number("temp", 1, 0, 100));
  sampling.top_p = TRY(number("top_p", 1, 1e-6, 1));
  double top_k = TRY(number("top_k", 0, -1, kTopKMax));
  sampling.top_k = static_cast<int>(std::max(0.0, top_k));
  sampling.min_p = TRY(number("min_p", 0, 0, 1));
  sampling.repetition_penalty = TRY(number("penalty_repeat", 1, 0.01, 100));
  sampling.repeat_last_n = static_cast<int>(TRY(number("penalty_last_n", -1, -1, 1 << 30)));
  return sampling;
}

}  // namespace

Result<SamplingParams> read_recommended_sampling(const std::string& folder) {
  if (is_gguf_file(folder)) return read_gguf_sampling(folder);
  std::string path = folder + "/generation_config.json";
  SamplingParams sampling;
  if (!file_exists(path)) return sampling;
  ConfigFile file = TRY(ConfigFile::parse(TRY(read_file(path, JsonLimits{}.bytes_max)), path));
  sampling.temperature = file.number_or("temperature", 1, 0, 100);
  sampling.top_p = file.number_or("top_p", 1, 1e-6, 1);
  int64_t top_k = file.integer_or("top_k", 0, -1, kTopKMax);
  sampling.top_k = static_cast<int>(std::max<int64_t>(0, top_k));  // -1 also means all
  sampling.min_p = file.number_or("min_p", 0, 0, 1);
  sampling.typical_p = file.number_or("typical_p", 1, 1e-6, 1);
  sampling.repetition_penalty = file.number_or("repetition_penalty", 1, 0.01, 100);
  if (!file.flag_or("do_sample", true)) sampling.temperature = 0;
  TRY(file.finish());
  return sampling;
}

}  // namespace banyan
