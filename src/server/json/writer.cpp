#include "server/json/writer.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

#include "base/json_text.h"
#include "server/json/text.h"

namespace banyan {

// The preceding character decides whether a comma is due; a string ends with its quote.
void JsonWriter::separate() {
  if (out_.size() == begin_) return;
  char last = out_.back();
  if (last != '{' && last != '[' && last != ':') out_ += ',';
}

JsonWriter& JsonWriter::put(char bracket) {
  separate();
  out_ += bracket;
  return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
  out_ += bracket;
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  separate();
  out_ += '"';
  out_ += name;
  out_ += "\":";
  return *this;
}

JsonWriter& JsonWriter::text(std::string_view value) {
  separate();
  append_string(out_, value);
  return *this;
}

JsonWriter& JsonWriter::number(int64_t value) {
  separate();
  append_integer(out_, value);
  return *this;
}

JsonWriter& JsonWriter::number(double value) {
  if (!std::isfinite(value)) return null();
  separate();
  fmt::format_to(std::back_inserter(out_), "{}", value);
  return *this;
}

JsonWriter& JsonWriter::logprob(float value) {
  separate();
  append_logprob(out_, value);
  return *this;
}

JsonWriter& JsonWriter::raw(std::string_view value) {
  separate();
  out_ += value;
  return *this;
}

JsonWriter& JsonWriter::json(const Json& value) {
  return raw(dump_json(value));
}

}  // namespace banyan
