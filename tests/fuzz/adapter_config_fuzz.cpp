// Any bytes as an adapter_config.json: what it says about a module is a rank within the limit and a
// finite scaling.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "weights/files/peft_adapter.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  auto config = banyan::PeftConfig::parse(text, "adapter_config.json");
  if (!config) return 0;
  for (const char* module : {"model.layers.0.self_attn.q_proj", "x", ""}) {
    int64_t rank = config->rank(module);
    CHECK(rank >= 1 && rank <= banyan::PeftConfig::kRankMax, "{}", rank);
    CHECK(std::isfinite(config->scaling(module)));
  }
  return 0;
}
