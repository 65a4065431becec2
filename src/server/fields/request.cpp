#include "server/fields/request.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/json_text.h"
#include "base/packed_json.h"

namespace banyan {
namespace {

// Whether the value means "off"; also a list of such values, one per prompt.
bool is_neutral(const Json& value) {
  if (value.is_array()) {
    return std::ranges::all_of(
        value, [](const Json& entry) { return entry.is_null() || entry == false || entry == ""; });
  }
  return value.is_null() || value == false || value == "" || (value.is_object() && value.empty());
}

}  // namespace

std::optional<int64_t> as_integer(const Json& value) {
  if (value.is_number_unsigned()) {
    auto number = value.get<uint64_t>();
    if (number > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return std::nullopt;
    return static_cast<int64_t>(number);
  }
  if (value.is_number_float()) {
    auto number = value.get<double>();
    // Above, the literal may have been another integer.
    bool fits = number == std::trunc(number) && std::abs(number) <= 0x1p53;
    return fits ? std::optional(static_cast<int64_t>(number)) : std::nullopt;
  }
  if (!value.is_number_integer()) return std::nullopt;
  return value.get<int64_t>();
}

std::string show(const Json& value) {
  constexpr size_t kBytesMax = 80;
  if (is_packed(value)) return fmt::format("a list of {}", packed_size(value));
  if (value.is_structured()) {
    return fmt::format("{} of {}", value.is_array() ? "a list" : "an object", value.size());
  }
  std::string text = dump_json(value);
  if (text.size() > kBytesMax) text = text.substr(0, kBytesMax) + "...";
  return text;
}

Result<std::vector<TokenId>> read_token_ids(const Json& list, std::string_view place,
                                            size_t count_max) {
  bool packed = is_packed(list);
  if (!packed && !list.is_array()) {
    return invalid_argument("{} is {}, not a list of token ids", place, show(list));
  }
  size_t count = packed ? packed_size(list) : list.size();
  if (count > count_max) {
    return invalid_argument("{} has {} entries, the limit is {}", place, count, count_max);
  }
  if (packed) return unpack(list);
  std::vector<TokenId> ids;
  ids.reserve(list.size());
  for (const Json& entry : list) {
    std::optional<int64_t> id = as_integer(entry);
    if (!id || *id < 0 || *id > std::numeric_limits<TokenId>::max()) {
      return invalid_argument("{}: {} is not a token id", place, show(entry));
    }
    ids.push_back(static_cast<TokenId>(*id));
  }
  return ids;
}

RequestFields::RequestFields(const Json& object, std::string place)
    : object_(object), place_(std::move(place)) {
  if (object.is_object()) return;
  std::string what = place_.empty() ? "the body" : place_.substr(0, place_.size() - 1);
  error_.emplace(Error{ErrorCode::kInvalidArgument,
                       fmt::format("{} is {}, not a JSON object", what, show(object))});
}

const Json* RequestFields::find(const char* name) const {
  if (error_) return nullptr;
  auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

void RequestFields::fail(const char* name, std::string message, ErrorCode code) {
  fail_as("", name, std::move(message), code);
}

void RequestFields::fail_as(const char* error_name, const char* name, std::string message,
                            ErrorCode code) {
  if (error_) return;
  Error error = make_error(code, place_ + name + std::move(message)).error();
  error_.emplace(std::move(error), place_ + name, error_name);
}

std::expected<void, RequestError> RequestFields::finish() {
  if (error_) return std::unexpected(*error_);
  return {};
}

bool RequestFields::flag(const char* name, bool fallback) {
  const Json* value = find(name);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) {
    fail(name, fmt::format(" is {}; it must be true or false", show(*value)));
    return fallback;
  }
  return value->get<bool>();
}

std::optional<int64_t> RequestFields::read_integer(const char* name, const Json& value, int64_t min,
                                                   int64_t max) {
  std::optional<int64_t> integer = as_integer(value);
  if (integer && *integer >= min && *integer <= max) return integer;
  fail(name, fmt::format(" is {}; it must be an integer from {} to {}", show(value), min, max));
  return std::nullopt;
}

std::optional<int64_t> RequestFields::integer_if(const char* name, int64_t min, int64_t max) {
  const Json* value = find(name);
  return value == nullptr ? std::nullopt : read_integer(name, *value, min, max);
}

int64_t RequestFields::integer(const char* name, int64_t fallback, int64_t min, int64_t max) {
  return integer_if(name, min, max).value_or(fallback);
}

std::optional<uint64_t> RequestFields::bits_if(const char* name) {
  const Json* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_number_unsigned()) return value->get<uint64_t>();
  if (auto integer = as_integer(*value)) return static_cast<uint64_t>(*integer);
  fail(name, fmt::format(" is {}; it must be an integer of 64 bits", show(*value)));
  return std::nullopt;
}

float RequestFields::number(const char* name, float fallback, float min, float max) {
  const Json* value = find(name);
  if (value == nullptr) return fallback;
  double number = value->is_number() ? value->get<double>() : std::nan("");
  if (number >= min && number <= max) return static_cast<float>(number);
  fail(name, fmt::format(" is {}; it must be a number from {} to {}", show(*value), min, max));
  return fallback;
}

std::string RequestFields::string(const char* name, size_t bytes_max) {
  const Json* value = find(name);
  if (value == nullptr) return {};
  if (!value->is_string()) {
    fail(name, fmt::format(" is {}; it must be a string", show(*value)));
    return {};
  }
  const auto& text = value->get_ref<const std::string&>();
  if (text.size() > bytes_max) {
    fail(name, fmt::format(" has {} bytes, the limit is {}", text.size(), bytes_max));
    return {};
  }
  return text;
}

std::vector<std::string> RequestFields::strings(const char* name, size_t count_max,
                                                size_t bytes_max) {
  const Json* value = find(name);
  if (value == nullptr) return {};
  if (value->is_string()) {
    std::string one = string(name, bytes_max);
    return one.empty() ? std::vector<std::string>() : std::vector{std::move(one)};
  }
  if (!value->is_array()) {
    fail(name, fmt::format(" is {}; it must be a string or a list of strings", show(*value)));
    return {};
  }
  if (value->size() > count_max) {
    fail(name, fmt::format(" has {} entries, the limit is {}", value->size(), count_max));
    return {};
  }
  std::vector<std::string> list;
  for (const Json& entry : *value) {
    if (!entry.is_string() || entry.get_ref<const std::string&>().size() > bytes_max) {
      fail(name, fmt::format(": {} is not a string of at most {} bytes", show(entry), bytes_max));
      return {};
    }
    if (!entry.get_ref<const std::string&>().empty()) list.push_back(entry);
  }
  return list;
}

std::vector<TokenId> RequestFields::token_ids(const char* name, size_t count_max) {
  const Json* value = find(name);
  if (value == nullptr) return {};
  Json one = Json::array();
  if (!value->is_array()) one.push_back(*value);
  auto ids = read_token_ids(value->is_array() ? *value : one, place_ + name, count_max);
  if (ids) return std::move(*ids);
  if (!error_) error_.emplace(ids.error(), place_ + name);
  return {};
}

void RequestFields::refuse(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const Json* value = find(name);
    if (value != nullptr && !is_neutral(*value)) {
      fail(name, " is not supported yet; leave it out", ErrorCode::kUnsupported);
    }
  }
}

void RequestFields::refuse_unsupported() {
  // Images, audio and video.
  refuse({"image_data", "images", "audio_data", "audio", "video_data", "multi_modal_data",
          "multimodal_data", "mm_processor_kwargs"});
  refuse({"lora_request"});
  if (!place_.empty()) refuse({"lora", "lora_path"});  // of the request: server/adapters
  refuse({"input_embeds", "prompt_embeds"});
  refuse({"logits_processors", "custom_logit_processor", "custom_params"});
  refuse({"return_hidden_states", "return_routed_experts", "return_sampling_mask"});
  refuse({"session_params", "session_id", "kv_transfer_params"});
}

void RequestFields::accept_only(std::initializer_list<Accepted> fields) {
  for (const Accepted& field : fields) {
    const Json* value = find(field.name);
    if (value == nullptr) continue;
    Json accepted = Json::parse(field.values);
    if (std::ranges::find(accepted, *value) != accepted.end()) continue;
    std::string known;
    for (const Json& one : accepted) known += (known.empty() ? "only " : " or ") + dump_json(one);
    fail(field.name,
         fmt::format(" is {}, which is not supported; {}{}leave it out", show(*value), known,
                     known.empty() ? "" : " is; "),
         ErrorCode::kUnsupported);
  }
}

}  // namespace banyan
