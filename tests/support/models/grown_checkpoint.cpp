#include "support/models/grown_checkpoint.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "base/check.h"
#include "base/file.h"
#include "support/numpy_random.h"
#include "support/shared.h"
#include "support/value_or_abort.h"
#include "weights/convert.h"

namespace banyan::test {
namespace {

uint64_t hash_of(const std::string& text) {  // FNV-1a
  uint64_t hash = 0xcbf29ce484222325u;
  for (unsigned char c : text) hash = (hash ^ c) * 0x100000001b3u;
  return hash;
}

DType dtype_of(const std::string& name) {
  if (name == "F32") return DType::kF32;
  if (name == "F16") return DType::kF16;
  CHECK(name == "BF16", "{}", name);
  return DType::kBF16;
}

uint64_t word(uint64_t seed, uint64_t index) {  // SplitMix64
  uint64_t z = seed + (index + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

std::vector<int64_t> shape_of(const std::string& text) {
  std::vector<int64_t> shape;
  std::istringstream dimensions(text);
  for (std::string extent; std::getline(dimensions, extent, 'x');) {
    shape.push_back(std::stoll(extent));
  }
  return shape;
}

std::string stored(const std::vector<float>& values, DType dtype) {
  std::string bytes(values.size() * dtype_bytes(dtype), '\0');
  convert_elements(values.data(), DType::kF32, bytes.data(), dtype,
                   static_cast<int64_t>(values.size()));
  return bytes;
}

// `center` plus a whole number below 2^15 times `step`, which has 8 bits: their product is exact.
std::vector<float> grown(int64_t count, uint64_t seed, float center, float step) {
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) {
    auto number = static_cast<float>(static_cast<int>(word(seed, i) >> 48) - 32768);
    values[i] = center + number * step;
  }
  return values;
}

// As tools/goldens/drawn.py. In double, product and sum are exact, and each is rounded once.
std::vector<float> drawn(int64_t count, NumpyRandom random, double center, float width) {
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) {
    auto scaled = static_cast<float>((2 * random.uniform() - 1) * double{width});
    value = static_cast<float>(center + double{scaled});
  }
  return values;
}

std::string bytes_of(int64_t count, uint64_t seed, uint64_t lowest, uint64_t range) {
  std::string bytes;
  for (int64_t i = 0; i < count; ++i) {
    uint64_t high = word(seed, static_cast<uint64_t>(i)) >> 48;
    bytes += static_cast<char>(lowest + high % range);
  }
  return bytes;
}

}  // namespace

std::vector<TestTensor> grow_tensors(const std::string& recipe) {
  std::istringstream lines(recipe);
  std::string seed, dtype, shape, name;
  lines >> seed;
  bool numpy = seed == "numpy";
  if (numpy) lines >> seed;
  std::vector<TestTensor> tensors;
  for (double center = 0, spread = 0; lines >> dtype >> shape >> center >> spread >> name;) {
    TestTensor tensor{name, dtype, shape_of(shape), {}};
    int64_t count = 1;
    for (int64_t extent : tensor.shape) count *= extent;
    uint64_t hash = hash_of(seed + "/" + name);
    auto width = static_cast<float>(spread);
    if (numpy) {
      std::array words{static_cast<uint32_t>(std::stoul(seed)), crc32_of(name)};
      tensor.bytes = stored(drawn(count, NumpyRandom(words), center, width), dtype_of(dtype));
    } else if (dtype == "U8") {
      tensor.bytes =
          bytes_of(count, hash, static_cast<uint64_t>(center), static_cast<uint64_t>(spread));
    } else {
      tensor.bytes = stored(grown(count, hash, static_cast<float>(center), width), dtype_of(dtype));
    }
    tensors.push_back(std::move(tensor));
  }
  CHECK(lines.eof() && !tensors.empty(), "after {}", name);
  return tensors;
}

std::string golden_folder(const std::string& name) {
  namespace fs = std::filesystem;
  fs::path from = source_path("tests/golden/models/" + name);
  if (!fs::exists(from / "weights.txt")) return from;
  static TemporaryFolder grown;
  fs::path to = fs::path(grown.path()) / name;
  if (!fs::create_directory(to)) return to;  // made before
  for (const char* file : {"config.json", "generation_config.json"}) {
    if (!fs::exists(from / file)) continue;
    grown.write(name + "/" + file, value_or_abort(read_file(from / file)));
  }
  std::string recipe = value_or_abort(read_file(from / "weights.txt"));
  grown.write(name + "/model.safetensors", safetensors_file(grow_tensors(recipe)));
  return to;
}

}  // namespace banyan::test
