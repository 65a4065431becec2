#include "base/json.h"

#include <simdjson.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/packed_json.h"

namespace banyan {
namespace {

constexpr uint64_t kPackedSubtype = 1;  // of binary values, which JSON itself does not have

// Shortens nlohmann's "[json.exception.parse_error.101] parse error at line 1, column 7: syntax
// error while parsing value - unexpected end of input; ..." to "line 1, column 7: unexpected end of
// input".
std::string in_plain_words(std::string_view text) {
  constexpr std::string_view kAt = "parse error at ", kReason = " - ";
  size_t at = text.find(kAt);
  if (at == text.npos) return std::string(text.substr(std::min(text.find("] ") + 2, text.size())));
  text.remove_prefix(at + kAt.size());
  size_t colon = text.find(": "), reason = text.find(kReason);
  if (colon == text.npos || reason == text.npos || reason < colon) return std::string(text);
  return fmt::format("{}: {}", text.substr(0, colon), text.substr(reason + kReason.size()));
}

// Builds the document while parsing and stops at the first violation. With a callback, nlohmann's
// own parser scans all members of a parent whenever an object ends, and all keys of an object for
// each added key. A list of a million objects would take hours.
class Builder : public nlohmann::json_sax<Json> {
 public:
  explicit Builder(const JsonLimits& limits) : limits_(limits) {}

  static constexpr auto kUnknownSize = static_cast<size_t>(-1);  // as nlohmann says it

  const std::string& error() const { return error_; }
  Json take() { return std::move(root_); }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t& value) override { return add(std::move(value)); }
  bool packed(std::vector<uint8_t> integers) {
    return add(Json::binary(std::move(integers), kPackedSubtype));
  }

  bool start_object(size_t) override {
    if (!open(Json::object())) return false;
    keys_.emplace_back();
    return true;
  }
  bool key(string_t& key) override {
    if (!keys_.back().insert(key).second) {
      return fail(fmt::format("the key \"{}\" appears twice in one object", key));
    }
    if (keys_.back().size() > limits_.keys_per_object_max) {
      return fail(fmt::format("an object has more than {} keys", limits_.keys_per_object_max));
    }
    key_ = std::move(key);
    return true;
  }
  bool end_object() override {
    keys_.pop_back();
    open_.pop_back();
    return true;
  }
  bool start_array(size_t size) override {
    if (!open(Json::array())) return false;
    if (size != kUnknownSize) open_.back()->get_ref<Json::array_t&>().reserve(size);
    return true;
  }
  bool end_array() override {
    open_.pop_back();
    return true;
  }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception& e) override {
    return fail(fmt::format("not valid JSON: {}", in_plain_words(e.what())));
  }

 private:
  bool fail(std::string message) {
    error_ = std::move(message);
    return false;
  }

  bool add(Json value) { return place(std::move(value)) != nullptr; }

  // Opens a container that receives the next values until it ends. Its address is stable until
  // then, since its parent does not grow meanwhile.
  bool open(Json container) {
    Json* place_of_it = place(std::move(container));
    if (place_of_it == nullptr) return false;
    open_.push_back(place_of_it);
    return true;
  }

  Json* place(Json value) {
    if (std::ssize(open_) > limits_.depth_max) {
      fail(fmt::format("nested deeper than {} levels", limits_.depth_max));
      return nullptr;
    }
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Json& parent = *open_.back();
    if (parent.is_array()) {
      return &parent.get_ref<Json::array_t&>().emplace_back(std::move(value));
    }
    auto& members = parent.get_ref<Json::object_t&>();
    // The key is new, so skip the lookup of ordered_map's emplace().
    return &members.emplace_back(std::move(key_), std::move(value)).second;
  }

  const JsonLimits& limits_;
  Json root_;
  std::vector<Json*> open_;
  string_t key_;
  std::vector<std::unordered_set<std::string>> keys_;  // by open object
  std::string error_;
};

// simdjson 3.0 takes an escaped low surrogate that follows no high one, and writes it as bytes that
// are not UTF-8.
bool has_surrogate(std::string_view text) {
  for (size_t at = text.find('\xed'); at != text.npos; at = text.find('\xed', at + 1)) {
    if (at + 1 < text.size() && static_cast<unsigned char>(text[at + 1]) >= 0xa0) return true;
  }
  return false;
}

// The integers of a list that can be packed.
std::optional<std::vector<uint8_t>> pack(simdjson::dom::element value) {
  constexpr size_t kSizeKnownMax = 0xfffffe;  // simdjson stores it in 24 bits
  simdjson::dom::array list;
  if (value.get(list) != simdjson::SUCCESS) return std::nullopt;
  if (list.size() == 0 || list.size() > kSizeKnownMax) return std::nullopt;
  std::vector<uint8_t> bytes(list.size() * sizeof(int32_t));
  uint8_t* at = bytes.data();
  for (simdjson::dom::element entry : list) {
    int64_t number = 0;
    if (entry.get(number) != simdjson::SUCCESS) return std::nullopt;
    if (number < 0 || number > std::numeric_limits<int32_t>::max()) return std::nullopt;
    auto integer = static_cast<int32_t>(number);
    std::memcpy(at, &integer, sizeof integer);
    at += sizeof integer;
  }
  return bytes;
}

// Passes what simdjson has parsed to a Builder; false where either refuses it.
class Walker {
 public:
  Walker(Builder& builder, std::span<const std::string_view> packed_keys)
      : builder_(builder), packed_keys_(packed_keys) {}

  // The outermost value.
  bool walk_root(simdjson::dom::element value) {
    simdjson::dom::object members;
    if (value.get(members) != simdjson::SUCCESS) return walk(value);
    return walk_object(members, packed_keys_);
  }

 private:
  using Keys = std::span<const std::string_view>;

  bool walk(simdjson::dom::element value) {
    using simdjson::dom::element_type;
    switch (value.type()) {
      case element_type::ARRAY:
        return walk_array(value.get_array().value_unsafe());
      case element_type::OBJECT:
        return walk_object(value.get_object().value_unsafe(), {});
      case element_type::INT64:
        return integer(value.get_int64().value_unsafe());
      case element_type::UINT64:
        return builder_.number_unsigned(value.get_uint64().value_unsafe());
      case element_type::DOUBLE:
        return builder_.number_float(value.get_double().value_unsafe(), {});
      case element_type::STRING:
        return string(value.get_string().value_unsafe());
      case element_type::BOOL:
        return builder_.boolean(value.get_bool().value_unsafe());
      case element_type::NULL_VALUE:
        return builder_.null();
    }
    return false;
  }
  bool walk_packed(simdjson::dom::element value) {
    auto integers = pack(value);
    return integers ? builder_.packed(*std::move(integers)) : walk(value);
  }
  // Integers, or a list of such lists.
  bool walk_lists(simdjson::dom::element value) {
    simdjson::dom::array lists;
    if (value.get(lists) != simdjson::SUCCESS || lists.size() == 0) return walk(value);
    if ((*lists.begin()).is_int64()) return walk_packed(value);
    if (!builder_.start_array(lists.size())) return false;
    for (simdjson::dom::element list : lists) {
      if (!walk_packed(list)) return false;
    }
    return builder_.end_array();
  }
  bool walk_array(simdjson::dom::array values) {
    if (!builder_.start_array(values.size())) return false;
    for (simdjson::dom::element value : values) {
      if (!walk(value)) return false;
    }
    return builder_.end_array();
  }
  bool walk_object(simdjson::dom::object members, Keys packed) {
    if (!builder_.start_object(members.size())) return false;
    for (auto [key, value] : members) {
      std::string name(key);
      if (has_surrogate(key) || !builder_.key(name)) return false;
      bool packs = std::ranges::find(packed, key) != packed.end();
      if (!(packs ? walk_lists(value) : walk(value))) return false;
    }
    return builder_.end_object();
  }
  bool integer(int64_t value) {
    if (value < 0) return builder_.number_integer(value);
    return builder_.number_unsigned(static_cast<uint64_t>(value));
  }
  bool string(std::string_view value) {
    std::string text(value);
    return !has_surrogate(value) && builder_.string(text);
  }

  Builder& builder_;
  Keys packed_keys_;
};

// Much faster than nlohmann's parser, but an error says neither where nor what.
std::optional<Json> parse_valid_json(std::string_view text, const JsonLimits& limits,
                                     std::span<const std::string_view> packed_keys) {
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  if (parser.parse(text.data(), text.size()).get(root) != simdjson::SUCCESS) return std::nullopt;
  Builder builder(limits);
  if (!Walker(builder, packed_keys).walk_root(root)) return std::nullopt;
  return builder.take();
}

}  // namespace

Result<Json> parse_json(std::string_view text, std::string_view what, JsonLimits limits) {
  return parse_packed_json(text, what, limits, {});
}

Result<Json> parse_packed_json(std::string_view text, std::string_view what, JsonLimits limits,
                               std::span<const std::string_view> keys) {
  if (text.size() > limits.bytes_max) {
    return exhausted("{}: {} bytes of JSON, the limit is {}", what, text.size(), limits.bytes_max);
  }
  if (std::optional<Json> valid = parse_valid_json(text, limits, keys)) return *std::move(valid);
  Builder builder(limits);
  if (!Json::sax_parse(text.begin(), text.end(), &builder)) {
    return corrupt("{}: {}", what, builder.error());
  }
  return builder.take();
}

bool is_packed(const Json& json) {
  return json.is_binary() && json.get_binary().has_subtype() &&
         json.get_binary().subtype() == kPackedSubtype;
}

size_t packed_size(const Json& json) {
  return json.get_binary().size() / sizeof(int32_t);
}

std::vector<int32_t> unpack(const Json& json) {
  const Json::binary_t& bytes = json.get_binary();
  std::vector<int32_t> integers(packed_size(json));
  if (!integers.empty()) std::memcpy(integers.data(), bytes.data(), bytes.size());
  return integers;
}

}  // namespace banyan
