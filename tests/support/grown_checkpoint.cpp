#include "support/grown_checkpoint.h"

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <sstream>

#include "base/check.h"
#include "base/file.h"
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

// `center` plus a whole number below 2^15 times `step`, which has 8 bits: their product is exact.
std::string elements_of(DType dtype, int64_t count, uint64_t seed, float center, float step) {
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) {
    auto number = static_cast<float>(static_cast<int>(word(seed, i) >> 48) - 32768);
    values[i] = center + number * step;
  }
  std::string bytes(values.size() * dtype_bytes(dtype), '\0');
  convert_elements(values.data(), DType::kF32, bytes.data(), dtype, count);
  return bytes;
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
  std::vector<TestTensor> tensors;
  for (double center = 0, step = 0; lines >> dtype >> shape >> center >> step >> name;) {
    TestTensor tensor{name, dtype, shape_of(shape), {}};
    int64_t count = 1;
    for (int64_t extent : tensor.shape) count *= extent;
    uint64_t hash = hash_of(seed + "/" + name);
    if (dtype == "U8") {
      tensor.bytes =
          bytes_of(count, hash, static_cast<uint64_t>(center), static_cast<uint64_t>(step));
    } else {
      CHECK(dtype == "F32" || dtype == "BF16", "{}", dtype);
      tensor.bytes = elements_of(dtype == "F32" ? DType::kF32 : DType::kBF16, count, hash,
                                 static_cast<float>(center), static_cast<float>(step));
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
  static std::map<std::string, std::unique_ptr<TemporaryFolder>> grown;
  std::unique_ptr<TemporaryFolder>& folder = grown[name];
  if (folder != nullptr) return folder->path();
  folder = std::make_unique<TemporaryFolder>();
  for (const char* file : {"config.json", "generation_config.json"}) {
    if (!fs::exists(from / file)) continue;
    folder->write(file, value_or_abort(read_file(from / file)));
  }
  std::string recipe = value_or_abort(read_file(from / "weights.txt"));
  folder->write("model.safetensors", safetensors_file(grow_tensors(recipe)));
  return folder->path();
}

}  // namespace banyan::test
