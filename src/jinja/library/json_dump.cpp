#include "jinja/library/json_dump.h"

#include <cmath>

#include "jinja/library/sort.h"
#include "jinja/library/unicode.h"

namespace banyan::jinja {
namespace {

std::string float_json(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
  return format_float(value);
}

class Dumper {
 public:
  Dumper(Runtime& rt, const JsonStyle& style) : rt_(rt), style_(style) {}

  Status value(const Value& v) {
    TRY(rt_.charge());
    switch (v.kind) {
      case Kind::kNone:
        out_ += "null";
        return {};
      case Kind::kBool:
        out_ += v.boolean ? "true" : "false";
        return {};
      case Kind::kInt:
        out_ += std::to_string(v.integer);
        return {};
      case Kind::kFloat:
        out_ += float_json(v.real);
        return {};
      case Kind::kString:
        return string(v.text());
      case Kind::kList:
      case Kind::kTuple:
        return list(v);
      case Kind::kDict:
        return object(*v.dict);
      default:
        return invalid_argument("Object of type {} is not JSON serializable", type_name(v));
    }
  }

  std::string take() { return std::move(out_); }

 private:
  Status string(std::string_view text) {
    TRY(rt_.charge_bytes(text.size() * 2));
    out_ += '"';
    while (!text.empty()) {
      size_t plain = 0;
      while (plain < text.size() && is_plain(text[plain])) ++plain;
      out_ += text.substr(0, plain);
      text.remove_prefix(plain);
      if (text.empty()) break;
      TRY(rt_.charge());
      special(next_code_point(text));
    }
    out_ += '"';
    return {};
  }

  bool is_plain(char c) const {
    auto byte = static_cast<unsigned char>(c);
    return byte >= 0x20 && byte != '"' && byte != '\\' && (byte < 0x7f || !style_.ensure_ascii);
  }

  void special(char32_t c) {
    switch (c) {
      case '"':
        out_ += "\\\"";
        return;
      case '\\':
        out_ += "\\\\";
        return;
      case '\n':
        out_ += "\\n";
        return;
      case '\r':
        out_ += "\\r";
        return;
      case '\t':
        out_ += "\\t";
        return;
      case '\f':
        out_ += "\\f";
        return;
      case '\b':
        out_ += "\\b";
        return;
      default:
        break;
    }
    if (c == 0x7f) {
      out_ += '\x7f';
    } else if (c < 0x10000) {
      out_ += fmt::format("\\u{:04x}", static_cast<uint32_t>(c));
    } else {
      uint32_t high = static_cast<uint32_t>(c) - 0x10000;
      out_ += fmt::format("\\u{:04x}\\u{:04x}", 0xd800 + (high >> 10), 0xdc00 + (high & 0x3ff));
    }
  }

  Status new_line() {
    if (!style_.indent) return {};
    TRY(rt_.charge_bytes(style_.indent->size() * level_));
    out_ += '\n';
    for (int i = 0; i < level_; ++i) out_ += *style_.indent;
    return {};
  }

  Status list(const Value& v) {
    if (v.items->size == 0) {
      out_ += "[]";
      return {};
    }
    Nested nested(rt_);
    TRY(rt_.check_depth());
    out_ += '[';
    ++level_;
    TRY(new_line());
    for (size_t i = 0; i < v.elements().size(); ++i) {
      if (i > 0) TRY(separator());
      TRY(value(v.elements()[i]));
    }
    --level_;
    TRY(new_line());
    out_ += ']';
    return {};
  }

  Status separator() {
    out_ += style_.item_separator;
    return new_line();
  }

  Status key(const Value& k) {
    switch (k.kind) {
      case Kind::kString:
        return string(k.text());
      case Kind::kFloat:
        return string(float_json(k.real));
      case Kind::kBool:
        return string(k.boolean ? "true" : "false");
      case Kind::kNone:
        return string("null");
      case Kind::kInt:
        return string(std::to_string(k.integer));
      default:
        return invalid_argument("keys must be str, int, float, bool or None, not {}", type_name(k));
    }
  }

  Status object(const Dict& dict) {
    if (dict.size == 0) {
      out_ += "{}";
      return {};
    }
    Nested nested(rt_);
    TRY(rt_.check_depth());
    std::vector<Dict::Entry> entries(dict.all().begin(), dict.all().end());
    if (style_.sort_keys) TRY(sort(entries));
    out_ += '{';
    ++level_;
    TRY(new_line());
    for (size_t i = 0; i < entries.size(); ++i) {
      if (i > 0) TRY(separator());
      TRY(key(entries[i].key));
      out_ += style_.key_separator;
      TRY(value(entries[i].value));
    }
    --level_;
    TRY(new_line());
    out_ += '}';
    return {};
  }

  Status sort(std::vector<Dict::Entry>& entries) {
    return merge_sort(entries, [&](const Dict::Entry& a, const Dict::Entry& b) -> Result<bool> {
      return TRY(order(rt_, a.key, b.key)) < 0;
    });
  }

  Runtime& rt_;
  const JsonStyle& style_;
  std::string out_;
  int level_ = 0;
};

}  // namespace

Result<std::string> dump_json(Runtime& rt, const Value& value, const JsonStyle& style) {
  Dumper dumper(rt, style);
  TRY(dumper.value(value));
  return dumper.take();
}

}  // namespace banyan::jinja
