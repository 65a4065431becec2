#include "llm/generation_config.h"

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"

namespace banyan {
namespace {

template <class T>
Status read_number(const Json& json, const char* key, const std::string& path, T& value) {
  auto it = json.find(key);
  if (it == json.end() || it->is_null()) return {};
  if (!it->is_number()) return corrupt("{}: {} = {} is not a number", path, key, it->dump());
  value = it->template get<T>();
  return {};
}

}  // namespace

Result<SamplingParams> read_recommended_sampling(const std::string& folder) {
  std::string path = folder + "/generation_config.json";
  SamplingParams sampling;
  if (!file_exists(path)) return sampling;
  Json json = TRY(parse_json(TRY(read_file(path, JsonLimits{}.bytes_max)), path));
  if (!json.is_object()) return corrupt("{}: not a JSON object", path);
  TRY(read_number(json, "temperature", path, sampling.temperature));
  TRY(read_number(json, "top_p", path, sampling.top_p));
  TRY(read_number(json, "top_k", path, sampling.top_k));
  TRY(read_number(json, "min_p", path, sampling.min_p));
  TRY(read_number(json, "repetition_penalty", path, sampling.repetition_penalty));
  if (json.value("do_sample", Json(true)) == Json(false)) sampling.temperature = 0;
  if (Status valid = sampling.validate(); !valid) {
    return corrupt("{}: {}", path, valid.error().message);
  }
  return sampling;
}

}  // namespace banyan
