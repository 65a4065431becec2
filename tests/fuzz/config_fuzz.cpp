// Any bytes as a config.json: every value that a getter gives lies in its range, and the family
// that the file names reads it and declares its weights over a checkpoint that has none of them.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "models/registry.h"
#include "weights/builder.h"
#include "weights/files/config_file.h"

namespace {

void check_range(double value, double min, double max) {
  CHECK(value >= min && value <= max, "{} is not in [{}, {}]", value, min, max);
}

class NoWeights final : public banyan::WeightSource {
 public:
  const banyan::TensorInfo* find(std::string_view) const override { return nullptr; }
  std::vector<const banyan::TensorInfo*> tensors() const override { return {}; }
  banyan::Status read(const banyan::TensorInfo&, size_t, std::span<std::byte>) const override {
    return {};
  }
};

void build_family(const banyan::ConfigFile& file) {
  auto architecture = file.architecture();
  if (!architecture) return;
  auto family = banyan::find_family(*architecture);
  if (!family) return;
  NoWeights none;
  banyan::WeightLoader loader({.source = &none, .dry = true});
  if ((*family)->load(file, banyan::Builder(loader))) CHECK(!loader.finish());
}

void read_getters(const banyan::ConfigFile& file) {
  (void)file.architecture();
  int64_t heads = file.integer("num_attention_heads", 1, 1024);
  int64_t hidden = file.integer("hidden_size", 1, 1 << 20);
  check_range(static_cast<double>(file.integer_or("head_dim", hidden / heads, 1, 1 << 20)), 1,
              1 << 20);
  check_range(file.number("rms_norm_eps", 0, 1), 0, 1);
  check_range(file.number_or("rope_theta", 1e4, 1, 1e12), 1, 1e12);
  file.flag("tie_word_embeddings");
  file.flag_or("attention_bias", false);
  file.text("model_type");
  file.only("hidden_act", {"silu"});
  for (int64_t id : file.integers("eos_token_id", 0, 1 << 24)) {
    check_range(static_cast<double>(id), 0, 1 << 24);
  }
  file.texts("layer_types");
  banyan::ConfigFile rope = file.object("rope_scaling");
  rope.text_or("rope_type", "default");
  for (double factor : rope.numbers("long_factor", 0, 1e6)) check_range(factor, 0, 1e6);
  rope.object("deeper").maybe_number("x", -1, 1);
  file.expect(hidden % heads == 0, "hidden_size {} by {}", hidden, heads);
  file.ignore({"use_cache"});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  auto file = banyan::ConfigFile::parse(text, "fuzz");
  if (!file) {
    CHECK(file.error().message.starts_with("fuzz: "));
    return 0;
  }
  read_getters(*file);
  (void)file->unread();
  banyan::Status status = file->finish();
  CHECK(status || status.error().message.starts_with("fuzz: "));
  // Again, from a fresh record: the first reading may have left an error that sticks.
  build_family(banyan::ConfigFile::parse(text, "fuzz").value());
  return 0;
}
