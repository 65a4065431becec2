// Any bytes as a config.json, read the way a family reads it: every value that comes back lies in
// its range, whatever the file says.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "weights/config_file.h"

namespace {

void check_range(double value, double min, double max) {
  CHECK(value >= min && value <= max, "{} is not in [{}, {}]", value, min, max);
}

void read_family(const banyan::ConfigFile& file) {
  (void)file.architecture();
  int64_t heads = file.integer("num_attention_heads", 1, 1024);
  int64_t hidden = file.integer("hidden_size", 1, 1 << 20);
  check_range(static_cast<double>(file.integer_or("head_dim", hidden / heads, 0, 1 << 20)), 0,
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
  auto file = banyan::ConfigFile::parse({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!file) {
    CHECK(file.error().message.starts_with("fuzz: "));
    return 0;
  }
  read_family(*file);
  (void)file->unread();
  banyan::Status status = file->finish();
  CHECK(status || status.error().message.starts_with("fuzz: "));
  return 0;
}
