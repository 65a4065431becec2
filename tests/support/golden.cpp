#include "support/golden.h"

#include <cstring>

#include "base/check.h"
#include "base/file.h"
#include "base/json.h"
#include "support/models/grown_checkpoint.h"
#include "support/shared.h"
#include "support/value_or_abort.h"

namespace banyan::test {
namespace {

constexpr const char* kFolder = "tests/golden/models/";

template <class T>
std::vector<T> elements(const SafetensorsFile& file, const std::string& name, DType dtype) {
  const TensorInfo* tensor = file.find(name);
  CHECK(tensor != nullptr && tensor->dtype == dtype, "{}: {}", file.path(), name);
  std::vector<T> values(tensor->bytes.size() / sizeof(T));
  Status read = file.read(*tensor, 0, std::as_writable_bytes(std::span(values)));
  CHECK(read.has_value(), "{}", read.error().message);
  return values;
}

}  // namespace

std::string GoldenCase::folder() const {
  return golden_folder(name);
}

std::string GoldenCase::config() const {
  return value_or_abort(read_file(source_path(kFolder + name + "/config.json")));
}

std::ostream& operator<<(std::ostream& out, const GoldenCase& golden) {
  return out << golden.name;
}

std::vector<GoldenCase> golden_cases() {
  std::string path = source_path(std::string(kFolder) + "manifest.json");
  Json manifest = value_or_abort(parse_json(value_or_abort(read_file(path)), path));
  std::vector<GoldenCase> cases;
  for (const Json& entry : manifest.at("cases")) {
    GoldenCase golden{.name = entry.at("name"),
                      .dtype = entry.at("dtype"),
                      .layers = entry.at("layers"),
                      .error_native = {}};
    if (entry.contains("error_native")) {
      const Json& error = entry.at("error_native");
      golden.error_native = {error.at("hidden").get<std::vector<double>>(), error.at("final"),
                             error.at("logits")};
    }
    cases.push_back(golden);
  }
  return cases;
}

GoldenReference::GoldenReference(const GoldenCase& golden)
    : file_(value_or_abort(
          SafetensorsFile::open(source_path(kFolder + golden.name + ".reference.safetensors")))) {}

std::vector<float> GoldenReference::floats(const std::string& name) const {
  return elements<float>(file_, name, DType::kF32);
}

std::vector<TokenId> GoldenReference::ids(const std::string& name) const {
  std::vector<int64_t> wide = elements<int64_t>(file_, name, DType::kI64);
  return {wide.begin(), wide.end()};
}

}  // namespace banyan::test
