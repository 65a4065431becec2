// Appends a JSON document to a string, value by value, without building a tree. The writer adds
// commas and quotes.
//
//   std::string out;
//   JsonWriter(out).begin_object().field("type", "ping").key("ids").begin_list().number(1)
//       .end_list().end_object();
//
// Belongs to one thread. `out` must outlive it, and nothing else may append to it meanwhile.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/json.h"

namespace banyan {

class JsonWriter {
 public:
  explicit JsonWriter(std::string& out) : out_(out), begin_(out.size()) {}

  JsonWriter& begin_object() { return put('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_list() { return put('['); }
  JsonWriter& end_list() { return close(']'); }
  // A value must follow. `name` must not need escapes.
  JsonWriter& key(std::string_view name);

  JsonWriter& text(std::string_view value);  // UTF-8
  JsonWriter& number(int64_t value);
  JsonWriter& number(double value);  // the shortest digits; infinity is null
  JsonWriter& logprob(float value);  // as append_logprob
  JsonWriter& flag(bool value) { return raw(value ? "true" : "false"); }
  JsonWriter& null() { return raw("null"); }
  JsonWriter& raw(std::string_view value);  // literal JSON text
  JsonWriter& json(const Json& value);

  JsonWriter& value(std::string_view text_value) { return text(text_value); }
  JsonWriter& value(const char* text_value) { return text(text_value); }
  template <std::integral T>
  JsonWriter& value(T integer) {
    if constexpr (std::same_as<T, bool>) {
      return flag(integer);
    } else {
      return number(static_cast<int64_t>(integer));
    }
  }
  JsonWriter& value(double real) { return number(real); }
  JsonWriter& value(std::nullptr_t) { return null(); }

  template <class T>
  JsonWriter& field(std::string_view name, const T& field_value) {
    return key(name).value(field_value);
  }
  JsonWriter& field(std::string_view name, const Json& field_value) {
    return key(name).json(field_value);
  }

 private:
  void separate();
  JsonWriter& put(char bracket);
  JsonWriter& close(char bracket);

  std::string& out_;
  size_t begin_;
};

// Appends a server-sent event with its type both in the `event` line and in the data, as
// Anthropic's API and OpenAI's Responses do. `fill` adds the other fields.
template <class Fill>
void append_typed_event(std::string& out, std::string_view type, Fill fill) {
  out += "event: ";
  out += type;
  out += "\ndata: ";
  JsonWriter writer(out);
  writer.begin_object().field("type", type);
  fill(writer);
  writer.end_object();
  out += "\n\n";
}

}  // namespace banyan
