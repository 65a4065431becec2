#include "support/gguf_file.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <sstream>

#include "base/check.h"
#include "base/file.h"
#include "support/shared.h"
#include "support/value_or_abort.h"
#include "tensor/dtype.h"
#include "weights/convert.h"

namespace banyan::test {
namespace {

enum Type : uint32_t { kI32 = 5, kF32 = 6, kBool = 7, kString = 8, kArray = 9, kI64 = 11 };

uint32_t tensor_type_of(std::string_view dtype) {
  if (dtype == "F32") return 0;
  if (dtype == "F16") return 1;
  if (dtype == "Q8_0") return 8;
  CHECK(dtype == "BF16", "{}", dtype);
  return 30;
}

uint32_t type_of(const Json& value) {
  if (value.is_string()) return kString;
  if (value.is_boolean()) return kBool;
  if (value.is_number_float()) return kF32;
  return value == value.get<int32_t>() ? kI32 : kI64;
}

std::string replaced(std::string text, std::string_view part, const std::string& by) {
  if (size_t at = text.find(part); at != text.npos) text.replace(at, part.size(), by);
  return text;
}

TestTensor as_f32(TestTensor tensor) {
  DType dtype = tensor.dtype == "BF16"  ? DType::kBF16
                : tensor.dtype == "F16" ? DType::kF16
                                        : DType::kF32;
  auto count = static_cast<int64_t>(tensor.bytes.size() / dtype_bytes(dtype));
  std::string bytes(static_cast<size_t>(count) * sizeof(float), '\0');
  convert_elements(tensor.bytes.data(), dtype, bytes.data(), DType::kF32, count);
  tensor.dtype = "F32";
  tensor.bytes = std::move(bytes);
  return tensor;
}

float at(const TestTensor& tensor, int64_t index) {
  float value;
  std::memcpy(&value, tensor.bytes.data() + index * static_cast<int64_t>(sizeof value),
              sizeof value);
  return value;
}

// A tensor of `shape` whose number i is number source(i) of `from`.
TestTensor picked(const TestTensor& from, std::vector<int64_t> shape,
                  const std::function<int64_t(int64_t)>& source) {
  TestTensor to{from.name, "F32", std::move(shape), {}};
  int64_t count = 1;
  for (int64_t extent : to.shape) count *= extent;
  for (int64_t i = 0; i < count; ++i) {
    float value = at(from, source(i));
    to.bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  return to;
}

TestTensor turned(const TestTensor& from, int64_t heads) {
  int64_t rows = from.shape[0], head = rows / heads;
  int64_t width = std::ssize(from.bytes) / static_cast<int64_t>(sizeof(float)) / rows;
  return picked(from, from.shape, [=](int64_t i) {
    int64_t row = i / width % head, first = i / width / head * head;
    return (first + row % 2 * (head / 2) + row / 2) * width + i % width;
  });
}

template <class Function>
TestTensor each(const TestTensor& from, const Function& function) {
  TestTensor to = from;
  for (int64_t i = 0; i < std::ssize(to.bytes) / 4; ++i) {
    float value = function(at(from, i));
    std::memcpy(to.bytes.data() + i * 4, &value, sizeof value);
  }
  return to;
}

TestTensor more(const TestTensor& from) {
  return each(from, [](float x) { return x + 1; });
}

TestTensor rate(const TestTensor& from) {
  return each(from, [](float x) { return -std::exp(x); });
}

// [first + outer * inner * rows, width] with `outer` and `inner` swapped.
TestTensor tiled(const TestTensor& from, std::span<const int64_t> numbers) {
  int64_t first = numbers[0], outer = numbers[1], inner = numbers[2], rows = numbers[3];
  int64_t width = std::ssize(from.bytes) / 4 / from.shape[0];
  return picked(from, from.shape, [=](int64_t i) {
    int64_t row = i / width - first;
    if (row < 0) return i;
    int64_t o = row / rows % outer, n = row / rows / outer;
    return (first + (o * inner + n) * rows + row % rows) * width + i % width;
  });
}

TestTensor tiled_columns(const TestTensor& from, std::span<const int64_t> numbers) {
  int64_t outer = numbers[1], inner = numbers[2], columns = numbers[3], width = from.shape[1];
  return picked(from, from.shape, [=](int64_t i) {
    int64_t column = i % width, o = column / columns % outer, n = column / columns / outer;
    return i - column + (o * inner + n) * columns + column % columns;
  });
}

// Of each of `runs` equal runs of rows a range, of all runs, then the next range.
TestTensor run_rows(const TestTensor& from, std::span<const int64_t> numbers) {
  int64_t runs = numbers[0], width = from.shape.back();
  int64_t all = std::ssize(from.bytes) / 4 / width / runs;
  std::vector<int64_t> rows;
  for (size_t range = 1; range + 1 < numbers.size(); range += 2) {
    for (int64_t run = 0; run < runs; ++run) {
      for (int64_t r = numbers[range]; r < numbers[range + 1]; ++r) rows.push_back(run * all + r);
    }
  }
  std::vector<int64_t> shape = from.shape;
  if (shape.size() == 3) shape[1] = std::ssize(rows) / runs;
  if (shape.size() == 2) shape[0] = std::ssize(rows);
  return picked(from, shape, [&](int64_t i) {
    return rows[static_cast<size_t>(i / width)] * width + i % width;
  });
}

// Every other number of the last dimension.
TestTensor alternate(const TestTensor& from, int64_t first) {
  std::vector<int64_t> shape = from.shape;
  shape.back() /= 2;
  return picked(from, shape, [first](int64_t i) { return 2 * i + first; });
}

// [experts, columns, rows] as [experts, kept, columns]: every `step`-th row from `first` on.
TestTensor swapped(const TestTensor& from, int64_t step, int64_t first, int64_t kept) {
  int64_t columns = from.shape[1], rows = from.shape[2];
  return picked(from, {from.shape[0], kept, columns}, [=](int64_t i) {
    int64_t expert = i / (kept * columns), row = i / columns % kept * step + first;
    return (expert * columns + i % columns) * rows + row;
  });
}

// Of a matrix for all heads, the rows [begin, end) of each one.
TestTensor rows_of_heads(const TestTensor& from, int64_t heads, int64_t begin, int64_t end) {
  int64_t all = from.shape[0] / heads, columns = from.shape[1], size = (end - begin) * columns;
  return picked(from, {heads, end - begin, columns},
                [=](int64_t i) { return (i / size * all + begin) * columns + i % size; });
}

class GgufRecipe {
 public:
  GgufRecipe(const std::string& name, const Json& recipe) : copy_(name), recipe_(recipe) {
    copy_.config.update(recipe.at("config"));
    for (const std::string prefix : recipe.value("dropped", Json::array())) {
      std::erase_if(copy_.tensors, [&](const auto& t) { return t.name.starts_with(prefix); });
    }
  }

  GgufGolden make() {
    GgufGolden golden{.pairs = recipe_.at("pairs"), .original = copy_};
    if (golden.pairs.contains("rope_freqs.weight")) {
      golden.tensors.push_back(rope_factors(golden.pairs));
      golden.pairs.erase("rope_freqs.weight");
    }
    auto layers = copy_.config.at("num_hidden_layers").get<int64_t>();
    for (const auto& [name, text] : recipe_.at("tensors").items()) {
      const auto& how = text.get_ref<const std::string&>();
      for (const char* change : {"more ", "rate ", "exp "}) {
        golden.rounded |= how.find(change) != how.npos;
      }
      bool of_layer = name.find('#') != name.npos;
      for (int64_t i = 0; i < (of_layer ? layers : 1); ++i) {
        std::optional<TestTensor> tensor = tensor_of(how, std::to_string(i));
        if (!tensor) continue;
        tensor->name = replaced(name, "#", std::to_string(i));
        std::vector<int64_t>& shape = tensor->shape;  // a convolution's loses its middle
        if (shape.size() == 3 && shape[1] == 1) shape.erase(shape.begin() + 1);
        if (how.starts_with('[')) shape = stated_shape(how);
        golden.tensors.push_back(*std::move(tensor));
      }
    }
    return golden;
  }

 private:
  static TestTensor rope_factors(const Json& pairs) {
    std::vector<float> factors = pairs.at("rope_freqs.weight");
    TestTensor tensor{"rope_freqs.weight", "F32", {std::ssize(factors)}, {}};
    tensor.bytes.assign(reinterpret_cast<const char*>(factors.data()), factors.size() * 4);
    return tensor;
  }

  static std::vector<int64_t> stated_shape(const std::string& text) {
    return Json::parse(text.substr(0, text.find(']') + 1)).get<std::vector<int64_t>>();
  }

  // Between the first word and the name.
  static std::vector<int64_t> numbers_in(const std::string& text) {
    std::istringstream words(text.substr(text.find(' ')));
    std::vector<int64_t> numbers;
    for (int64_t number; words >> number;) numbers.push_back(number);
    return numbers;
  }

  // Nothing where this layer lacks it.
  std::optional<TestTensor> tensor_of(std::string text, const std::string& layer) {
    if (text.starts_with('[')) text.erase(0, text.find(']') + 2);
    std::string how = text.substr(0, text.find(' '));
    std::string name = replaced(text.substr(text.rfind(' ') + 1), "#", layer);
    if (how == "stack") return stacked(name);
    auto found = std::ranges::find(copy_.tensors, name, &TestTensor::name);
    if (found == copy_.tensors.end()) return std::nullopt;
    TestTensor from = as_f32(*found);
    if (how == "turn") return turned(from, std::stoll(text.substr(how.size())));
    if (how == "more") return more(from);
    if (how == "even" || how == "odd") return alternate(from, how == "odd");
    if (how == "rate") return rate(from);
    if (how == "exp") return each(from, [](float x) { return std::exp(x); });
    if (how == "tile") return tiled(from, numbers_in(text));
    if (how == "tile-rate") return tiled(rate(from), numbers_in(text));
    if (how == "tile-columns") return tiled_columns(from, numbers_in(text));
    if (how == "runs") return run_rows(from, numbers_in(text));
    if (how.starts_with("swap")) return swapped_by(how, from);
    if (how == "keys" || how == "values") {
      int64_t heads = numbers_in(text)[0], rows = numbers_in(text)[1];
      if (how == "values") return rows_of_heads(from, heads, rows, from.shape[0] / heads);
      TestTensor keys = rows_of_heads(from, heads, 0, rows);
      return swapped(keys, 1, 0, keys.shape[2]);
    }
    CHECK(how == "copy", "{}", text);
    return from;
  }

  static TestTensor swapped_by(std::string_view how, const TestTensor& from) {
    int64_t rows = from.shape[2];
    if (how == "swap") return swapped(from, 1, 0, rows);
    if (how == "swap-first" || how == "swap-second") {
      return swapped(from, 1, how == "swap-first" ? 0 : rows / 2, rows / 2);
    }
    return swapped(from, 2, how == "swap-odd", rows / 2);
  }

  std::optional<TestTensor> stacked(const std::string& pattern) {
    std::optional<TestTensor> all;
    for (int64_t e = 0;; ++e) {
      std::string name = replaced(pattern, "@", std::to_string(e));
      auto found = std::ranges::find(copy_.tensors, name, &TestTensor::name);
      if (found == copy_.tensors.end()) return all;
      TestTensor expert = as_f32(*found);
      if (!all) {
        all = expert;
        all->shape.insert(all->shape.begin(), 1);
      } else {
        all->bytes += expert.bytes;
        ++all->shape[0];
      }
    }
  }

  CheckpointCopy copy_;
  const Json& recipe_;
};

const Json& recipes() {
  static const Json all =
      Json::parse(value_or_abort(read_file(source_path("tests/golden/gguf/recipes.json"))));
  return all;
}

}  // namespace

GgufBytes& GgufBytes::text(std::string_view value) {
  number<uint64_t>(value.size());
  bytes_ += value;
  return *this;
}

GgufBytes& GgufBytes::begin(uint64_t tensors, uint64_t pairs, uint32_t version) {
  bytes_ += "GGUF";
  return number(version).number(tensors).number(pairs);
}

GgufBytes& GgufBytes::pair(std::string_view key, std::string_view value) {
  return text(key).number<uint32_t>(kString).text(value);
}

GgufBytes& GgufBytes::pair(std::string_view key, uint32_t value) {
  return text(key).number<uint32_t>(4).number(value);
}

GgufBytes& GgufBytes::pair(std::string_view key, const Json& value) {
  text(key);
  if (!value.is_array()) return number(type_of(value)).value(value);
  number<uint32_t>(kArray).number(value.empty() ? kI32 : type_of(value[0]));
  number<uint64_t>(value.size());
  for (const Json& item : value) this->value(item);
  return *this;
}

GgufBytes& GgufBytes::value(const Json& value) {
  if (value.is_string()) return text(value.get_ref<const std::string&>());
  if (value.is_boolean()) return number<uint8_t>(value.get<bool>());
  if (value.is_number_float()) return number(value.get<float>());
  if (type_of(value) == kI64) return number(value.get<int64_t>());
  return number(value.get<int32_t>());
}

GgufBytes& GgufBytes::tensor(std::string_view name, const std::vector<uint64_t>& dimensions,
                             uint32_t type, uint64_t offset) {
  text(name).number(static_cast<uint32_t>(dimensions.size()));
  for (uint64_t dimension : dimensions) number(dimension);
  return number(type).number(offset);
}

GgufBytes& GgufBytes::data(size_t count, char fill) {
  bytes_.resize((bytes_.size() + 31) / 32 * 32);
  bytes_.append(count, fill);
  return *this;
}

std::string gguf_file(const Json& pairs, const std::vector<TestTensor>& tensors) {
  GgufBytes file;
  file.begin(tensors.size(), pairs.size());
  for (const auto& [key, value] : pairs.items()) file.pair(key, value);
  std::string data;
  for (const TestTensor& tensor : tensors) {
    uint32_t type = tensor_type_of(tensor.dtype);
    std::vector<uint64_t> dimensions(tensor.shape.rbegin(), tensor.shape.rend());
    file.tensor(tensor.name, dimensions, type, data.size());
    data += tensor.bytes;
    data.resize((data.size() + 31) / 32 * 32);
  }
  return file.data(0).bytes() + data;
}

TestTensor in_q8_0(TestTensor& tensor) {
  constexpr int64_t kBlock = 32;
  if (tensor.shape.size() < 2 || tensor.shape.back() % kBlock != 0) return tensor;
  TestTensor packed{tensor.name, "Q8_0", tensor.shape, {}};
  std::vector<float> values(tensor.bytes.size() / sizeof(float));
  std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  for (auto block = values.begin(); block != values.end(); block += kBlock) {
    float most = 0;
    for (auto x = block; x != block + kBlock; ++x) most = std::max(most, std::abs(*x));
    float scale = most / 127;
    uint16_t half;
    convert_elements(&scale, DType::kF32, &half, DType::kF16, 1);
    convert_elements(&half, DType::kF16, &scale, DType::kF32, 1);
    packed.bytes.append(reinterpret_cast<const char*>(&half), sizeof half);
    for (auto x = block; x != block + kBlock; ++x) {
      auto code =
          static_cast<int8_t>(std::clamp(std::round(scale == 0 ? 0 : *x / scale), -127.0F, 127.0F));
      packed.bytes.push_back(static_cast<char>(code));
      *x = code * scale;
    }
  }
  std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
  return packed;
}

std::vector<std::string> gguf_golden_names() {
  std::vector<std::string> names;
  for (const auto& [name, recipe] : recipes().items()) names.push_back(name);
  return names;
}

GgufGolden gguf_golden(const std::string& name) {
  return GgufRecipe(name, recipes().at(name)).make();
}

GgufGolden gguf_golden_with_tokenizer() {
  GgufGolden golden = gguf_golden("qwen2-tied");
  constexpr size_t kVocabulary = 97;
  constexpr int kNormal = 1, kControl = 3, kUnused = 5;
  Json tokens = {"a", "b", "ab", "<|im_end|>"}, types = {kNormal, kNormal, kNormal, kControl};
  while (tokens.size() < kVocabulary) {
    tokens.push_back("t" + std::to_string(tokens.size()));
    types.push_back(kUnused);
  }
  golden.pairs["tokenizer.ggml.model"] = "gpt2";
  golden.pairs["tokenizer.ggml.pre"] = "gpt-2";
  golden.pairs["tokenizer.ggml.tokens"] = tokens;
  golden.pairs["tokenizer.ggml.token_type"] = types;
  golden.pairs["tokenizer.ggml.merges"] = Json::array({"a b"});
  golden.pairs["tokenizer.ggml.eos_token_id"] = 3;
  return golden;
}

}  // namespace banyan::test
