#include "weights/files/config_file.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/file.h"
#include "base/quote.h"

namespace banyan {
namespace {

constexpr size_t kShownBytesMax = 60;

std::string text_of(const Json& value) {
  if (value.is_string()) return quote(value.get_ref<const std::string&>(), kShownBytesMax);
  std::string text = value.dump(-1, ' ', true);  // ASCII, so it can be cut anywhere
  return text.size() <= kShownBytesMax ? text : text.substr(0, kShownBytesMax) + "...";
}

const Json& empty_object() {
  static const Json kEmpty = Json::object();
  return kEmpty;
}

// Collects the keys of `object`, in dotted form, that were never read. Sub-objects that were opened
// report their own keys.
void collect_unread(const Json& object, const std::string& prefix,
                    const std::set<std::string>& read, const std::set<std::string>& opened,
                    std::vector<std::string>* unread) {
  for (const auto& [key, value] : object.items()) {
    std::string name = prefix + key;
    if (value.is_object() && opened.contains(name)) {
      collect_unread(value, name + ".", read, opened, unread);
    } else if (!read.contains(name) && !value.is_null()) {
      unread->push_back(name);
    }
  }
}

}  // namespace

struct ConfigFile::Shared {
  std::string path;
  Json root;
  std::optional<Error> error;
  std::set<std::string> read;
  std::set<std::string> opened;
  std::map<std::string, std::string> values;
};

template <class T>
T ConfigFile::give(std::string_view key, T value) const {
  shared_->values[prefix_ + std::string(key)] =
      Json(value).dump(-1, ' ', true, Json::error_handler_t::replace);
  return value;
}

template <class T>
std::optional<T> ConfigFile::give(std::string_view key, std::optional<T> value) const {
  if (value) return give(key, *std::move(value));
  shared_->values[prefix_ + std::string(key)] = "null";
  return value;
}

std::map<std::string, std::string> ConfigFile::values() const {
  return shared_->values;
}

Result<ConfigFile> ConfigFile::load(const std::string& folder) {
  std::string path = folder + "/config.json";
  if (!file_exists(path)) {
    return not_found("{}: no such file; a Hugging Face checkpoint's folder has one", path);
  }
  return parse(TRY(read_file(path, JsonLimits{}.bytes_max)), path);
}

Result<ConfigFile> ConfigFile::parse(std::string_view text, const std::string& path) {
  Json root = TRY(parse_json(text, path));
  if (!root.is_object()) return corrupt("{}: {} is not a JSON object", path, text_of(root));
  auto shared = std::make_shared<Shared>();
  shared->path = path;
  shared->root = std::move(root);
  return ConfigFile(shared, &shared->root, "");
}

ConfigFile::ConfigFile(std::shared_ptr<Shared> shared, const Json* object, std::string prefix)
    : shared_(std::move(shared)), object_(object), prefix_(std::move(prefix)) {}

Result<std::string> ConfigFile::architecture() const {
  if (!prefix_.empty()) return ConfigFile(shared_, &shared_->root, "").architecture();
  const Json* list = look_up("architectures");
  if (list == nullptr) return corrupt("{}: no architectures", shared_->path);
  if (!list->is_array() || list->empty() || !list->front().is_string()) {
    return corrupt("{}: architectures = {} is not a list of names", shared_->path, text_of(*list));
  }
  return give("architectures", list->front().get<std::string>());
}

bool ConfigFile::has(std::string_view key) const {
  auto found = object_->find(key);
  return found != object_->end() && !found->is_null();
}

bool ConfigFile::is_null(std::string_view key) const {
  auto found = object_->find(key);
  return found != object_->end() && found->is_null();
}

bool ConfigFile::is_list(std::string_view key) const {
  auto found = object_->find(key);
  return found != object_->end() && found->is_array();
}

int64_t ConfigFile::integer(std::string_view key, int64_t min, int64_t max) const {
  const Json* value = demand(key);
  return give(key, value == nullptr ? min : as_integer(key, *value, min, max).value_or(min));
}

int64_t ConfigFile::integer_or(std::string_view key, int64_t fallback, int64_t min,
                               int64_t max) const {
  const Json* value = look_up(key);
  if (value != nullptr) return give(key, as_integer(key, *value, min, max).value_or(min));
  if (fallback >= min && fallback <= max) return give(key, fallback);
  fail(ErrorCode::kCorrupt, fmt::format("no {}{}, and {} would be no integer from {} to {}",
                                        prefix_, key, fallback, min, max));
  return min;
}

std::optional<int64_t> ConfigFile::maybe_integer(std::string_view key, int64_t min,
                                                 int64_t max) const {
  const Json* value = look_up(key);
  return give(key, value == nullptr ? std::nullopt : as_integer(key, *value, min, max));
}

double ConfigFile::number(std::string_view key, double min, double max) const {
  const Json* value = demand(key);
  return give(key, value == nullptr ? min : as_number(key, *value, min, max).value_or(min));
}

double ConfigFile::number_or(std::string_view key, double fallback, double min, double max) const {
  const Json* value = look_up(key);
  if (value != nullptr) return give(key, as_number(key, *value, min, max).value_or(min));
  if (fallback >= min && fallback <= max) return give(key, fallback);
  fail(ErrorCode::kCorrupt, fmt::format("no {}{}, and {} would be no number from {} to {}", prefix_,
                                        key, fallback, min, max));
  return min;
}

std::optional<double> ConfigFile::maybe_number(std::string_view key, double min, double max) const {
  const Json* value = look_up(key);
  return give(key, value == nullptr ? std::nullopt : as_number(key, *value, min, max));
}

bool ConfigFile::flag(std::string_view key) const {
  const Json* value = demand(key);
  return give(key, value != nullptr && as_flag(key, *value).value_or(false));
}

bool ConfigFile::flag_or(std::string_view key, bool fallback) const {
  const Json* value = look_up(key);
  return give(key, value == nullptr ? fallback : as_flag(key, *value).value_or(fallback));
}

std::string ConfigFile::text(std::string_view key) const {
  const Json* value = demand(key);
  return give(key, value == nullptr ? std::string() : as_text(key, *value).value_or(""));
}

std::string ConfigFile::text_or(std::string_view key, std::string_view fallback) const {
  return give(key, maybe_text(key).value_or(std::string(fallback)));
}

std::optional<std::string> ConfigFile::maybe_text(std::string_view key) const {
  const Json* value = look_up(key);
  return give(key, value == nullptr ? std::nullopt : as_text(key, *value));
}

std::vector<int64_t> ConfigFile::integers(std::string_view key, int64_t min, int64_t max) const {
  std::vector<int64_t> list;
  const Json* value = look_up(key);
  if (value == nullptr) return give(key, list);
  auto add = [&](const Json& item) {
    if (auto integer = as_integer(key, item, min, max)) list.push_back(*integer);
  };
  if (!value->is_array()) add(*value);
  if (value->is_array()) std::ranges::for_each(*value, add);
  return give(key, list);
}

std::vector<double> ConfigFile::numbers(std::string_view key, double min, double max) const {
  std::vector<double> list;
  const Json* value = look_up(key);
  if (value == nullptr) return give(key, list);
  auto add = [&](const Json& item) {
    if (auto number = as_number(key, item, min, max)) list.push_back(*number);
  };
  if (!value->is_array()) add(*value);
  if (value->is_array()) std::ranges::for_each(*value, add);
  return give(key, list);
}

std::vector<std::string> ConfigFile::texts(std::string_view key) const {
  std::vector<std::string> list;
  const Json* value = look_up(key);
  if (value == nullptr) return give(key, list);
  if (!value->is_array()) {
    wrong(key, *value, "a list of strings");
    return list;
  }
  for (const Json& item : *value) {
    if (auto text = as_text(key, item)) list.push_back(*std::move(text));
  }
  return give(key, list);
}

bool ConfigFile::is_off(std::string_view key) const {
  auto found = object_->find(key);
  if (found == object_->end() || found->is_null()) return true;
  if (found->is_string()) return found->get_ref<const std::string&>().empty();
  if (found->is_structured()) return found->empty();
  return *found == false || *found == 0;
}

bool ConfigFile::holds(std::string_view key, std::initializer_list<Json> values) const {
  auto found = object_->find(key);
  return found != object_->end() && std::ranges::find(values, *found) != values.end();
}

bool ConfigFile::is_object(std::string_view key) const {
  auto found = object_->find(key);
  return found != object_->end() && found->is_object();
}

std::string ConfigFile::shown(std::string_view key) const {
  auto found = object_->find(key);
  return found == object_->end() ? "absent" : text_of(*found);
}

std::string_view ConfigFile::name_of(std::initializer_list<std::string_view> names) const {
  std::string_view used;
  const Json* value = nullptr;
  for (std::string_view name : names) {
    const Json* other = look_up(name);
    if (other == nullptr) continue;
    if (value == nullptr) {
      used = name;
      value = other;
    } else if (*other != *value) {
      fail(ErrorCode::kCorrupt, fmt::format("{}{} = {}, but {} = {}, which is the same thing",
                                            prefix_, used, text_of(*value), name, text_of(*other)));
    }
  }
  return value == nullptr ? *names.begin() : used;
}

ConfigFile ConfigFile::object(std::string_view key) const {
  const Json* value = look_up(key);
  if (value != nullptr && !value->is_object()) {
    wrong(key, *value, "an object");
    value = nullptr;
  }
  std::string name = prefix_ + std::string(key);
  if (value != nullptr) shared_->opened.insert(name);
  return ConfigFile(shared_, value == nullptr ? &empty_object() : value, name + ".");
}

std::vector<std::string> ConfigFile::keys() const {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object_->items()) keys.push_back(key);
  return keys;
}

void ConfigFile::only(std::string_view key, std::initializer_list<Json> supported) const {
  const Json* value = look_up(key);
  if (value == nullptr || std::ranges::find(supported, *value) != supported.end()) return;
  std::string list;
  for (const Json& item : supported) list += (list.empty() ? "" : ", ") + text_of(item);
  if (list.empty()) list = "only its absence";
  auto family = ConfigFile(shared_, &shared_->root, "").architecture();
  fail(ErrorCode::kUnsupported,
       fmt::format("{}{} = {} is not supported by {}; supported: {}", prefix_, key, text_of(*value),
                   family ? *family : "this build", list));
}

void ConfigFile::only_keys(std::initializer_list<std::string_view> known) const {
  for (const auto& [key, value] : object_->items()) {
    if (value.is_null() || std::ranges::find(known, key) != known.end()) continue;
    fail(ErrorCode::kUnsupported,
         fmt::format("{}{} = {} is not supported here; supported: {}", prefix_, key, text_of(value),
                     fmt::join(known, ", ")));
  }
}

void ConfigFile::ignore(std::initializer_list<std::string_view> keys) const {
  for (std::string_view key : keys) shared_->read.insert(prefix_ + std::string(key));
}

void ConfigFile::ignore_object(std::string_view key) const {
  std::string name = prefix_ + std::string(key);
  shared_->read.insert(name);
  shared_->opened.erase(name);
}

Status ConfigFile::finish() const {
  if (shared_->error) return std::unexpected(*shared_->error);
  return {};
}

std::vector<std::string> ConfigFile::unread() const {
  std::vector<std::string> unread;
  collect_unread(shared_->root, "", shared_->read, shared_->opened, &unread);
  return unread;
}

const Json* ConfigFile::look_up(std::string_view key) const {
  shared_->read.insert(prefix_ + std::string(key));
  auto found = object_->find(key);
  return found == object_->end() || found->is_null() ? nullptr : &*found;
}

const Json* ConfigFile::demand(std::string_view key) const {
  const Json* value = look_up(key);
  if (value == nullptr) fail(ErrorCode::kCorrupt, fmt::format("no {}{}", prefix_, key));
  return value;
}

std::optional<int64_t> ConfigFile::as_integer(std::string_view key, const Json& value, int64_t min,
                                              int64_t max) const {
  CHECK(min <= max, "{}: [{}, {}]", key, min, max);
  bool fits = value.is_number_unsigned() ? std::in_range<int64_t>(value.get<uint64_t>())
                                         : value.is_number_integer();
  if (fits && value.get<int64_t>() >= min && value.get<int64_t>() <= max) {
    return value.get<int64_t>();
  }
  wrong(key, value, fmt::format("an integer from {} to {}", min, max));
  return std::nullopt;
}

std::optional<double> ConfigFile::as_number(std::string_view key, const Json& value, double min,
                                            double max) const {
  CHECK(min <= max, "{}: [{}, {}]", key, min, max);
  if (value.is_number() && value.get<double>() >= min && value.get<double>() <= max) {
    return value.get<double>();
  }
  wrong(key, value, fmt::format("a number from {} to {}", min, max));
  return std::nullopt;
}

std::optional<bool> ConfigFile::as_flag(std::string_view key, const Json& value) const {
  if (value.is_boolean()) return value.get<bool>();
  wrong(key, value, "true or false");
  return std::nullopt;
}

std::optional<std::string> ConfigFile::as_text(std::string_view key, const Json& value) const {
  if (value.is_string()) return value.get<std::string>();
  wrong(key, value, "a string");
  return std::nullopt;
}

void ConfigFile::wrong(std::string_view key, const Json& value, std::string_view demanded) const {
  fail(ErrorCode::kCorrupt,
       fmt::format("{}{} = {} is not {}", prefix_, key, text_of(value), demanded));
}

void ConfigFile::fail(ErrorCode code, const std::string& message) const {
  if (!shared_->error) shared_->error = Error{code, fmt::format("{}: {}", shared_->path, message)};
}

}  // namespace banyan
