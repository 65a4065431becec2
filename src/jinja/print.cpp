// str() and repr(), as Python prints them.
#include <array>
#include <charconv>
#include <cmath>

#include "jinja/library/unicode.h"
#include "jinja/loop.h"
#include "jinja/runtime.h"

namespace banyan::jinja {
namespace {

void append_escaped(std::string& out, char32_t c, char quote) {
  switch (c) {
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      break;
  }
  if (c == static_cast<char32_t>(quote)) {
    out += '\\';
    out += quote;
  } else if (is_printable(c)) {
    unicode::append(out, c);
  } else if (c < 0x100) {
    out += fmt::format("\\x{:02x}", static_cast<uint32_t>(c));
  } else if (c < 0x10000) {
    out += fmt::format("\\u{:04x}", static_cast<uint32_t>(c));
  } else {
    out += fmt::format("\\U{:08x}", static_cast<uint32_t>(c));
  }
}

void append_string_repr(std::string& out, std::string_view text) {
  bool single = text.find('\'') != std::string_view::npos;
  bool both = single && text.find('"') != std::string_view::npos;
  char quote = single && !both ? '"' : '\'';
  out += quote;
  while (!text.empty()) append_escaped(out, next_code_point(text), quote);
  out += quote;
}

Status append_items(Runtime& rt, std::string& out, std::span<const Value> items) {
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out += ", ";
    TRY(append_repr(rt, out, items[i]));
  }
  return {};
}

Status append_dict(Runtime& rt, std::string& out, const Dict& dict) {
  out += '{';
  for (int64_t i = 0; i < dict.size; ++i) {
    if (i > 0) out += ", ";
    TRY(append_repr(rt, out, dict.entries[i].key));
    out += ": ";
    TRY(append_repr(rt, out, dict.entries[i].value));
  }
  out += '}';
  return {};
}

Status append_container(Runtime& rt, std::string& out, const Value& value) {
  Nested nested(rt);
  TRY(rt.check_depth());
  switch (value.kind) {
    case Kind::kList:
      out += '[';
      TRY(append_items(rt, out, value.elements()));
      out += ']';
      return {};
    case Kind::kTuple:
      out += '(';
      TRY(append_items(rt, out, value.elements()));
      out += value.items->size == 1 ? ",)" : ")";
      return {};
    case Kind::kDict:
      return append_dict(rt, out, *value.dict);
    case Kind::kView:
      out += type_name(value);
      out += "([";
      TRY(append_items(rt, out, TRY(iterate(rt, value))));
      out += "])";
      return {};
    default:
      out += "<Namespace ";
      TRY(append_dict(rt, out, *value.name_space->attributes));
      out += '>';
      return {};
  }
}

Status append_range(std::string& out, const Range& range) {
  out += fmt::format("range({}, {}", range.start, range.stop);
  if (range.step != 1) out += fmt::format(", {}", range.step);
  out += ')';
  return {};
}

}  // namespace

std::string format_float(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::array<char, 40> buffer;
  auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                           std::chars_format::scientific)
                 .ptr;
  std::string_view text(buffer.data(), end);
  size_t e = text.find('e');
  int exponent = 0;
  const char* digits = text.data() + e + 1 + (text[e + 1] == '+' ? 1 : 0);
  std::from_chars(digits, end, exponent);
  if (exponent < -4 || exponent >= 16) {
    return fmt::format("{}e{}{:02}", text.substr(0, e), exponent < 0 ? '-' : '+',
                       std::abs(exponent));
  }
  end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed)
            .ptr;
  std::string out(buffer.data(), end);
  if (out.find('.') == std::string::npos) out += ".0";
  return out;
}

Status append_repr(Runtime& rt, std::string& out, const Value& value) {
  TRY(rt.charge());
  switch (value.kind) {
    case Kind::kAbsent:
    case Kind::kUndefined:
      out += "Undefined";
      return {};
    case Kind::kNone:
      out += "None";
      return {};
    case Kind::kBool:
      out += value.boolean ? "True" : "False";
      return {};
    case Kind::kInt:
      out += std::to_string(value.integer);
      return {};
    case Kind::kFloat:
      out += format_float(value.real);
      return {};
    case Kind::kString:
      TRY(rt.charge(value.text().size() / 2));
      if (value.safe()) out += "Markup(";
      append_string_repr(out, value.text());
      if (value.safe()) out += ')';
      return {};
    case Kind::kRange:
      return append_range(out, *value.range);
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kDict:
    case Kind::kView:
    case Kind::kNamespace:
      return append_container(rt, out, value);
    case Kind::kMacro:
      out += value.macro->name.empty() ? "<Macro anonymous>"
                                       : fmt::format("<Macro '{}'>", value.macro->name);
      return {};
    case Kind::kLoop:
      out += fmt::format("<LoopContext {}/{}>", value.loop->index0 + 1, value.loop->source.size());
      return {};
    case Kind::kFunction:
      out += fmt::format("<built-in method {}>", value.function->builtin->name);
      return {};
    default:
      out += fmt::format("<{} object>", type_name(value));
      return {};
  }
}

Status append_str(Runtime& rt, std::string& out, const Value& value) {
  if (value.is_string()) {
    TRY(rt.charge_bytes(value.text().size()));
    out += value.text();
    return {};
  }
  if (value.is_undefined()) return {};
  return append_repr(rt, out, value);
}

Result<std::string> to_str(Runtime& rt, const Value& value) {
  std::string out;
  TRY(append_str(rt, out, value));
  return out;
}

Result<Value> soft_str(Runtime& rt, const Value& value) {
  if (value.is_string()) return value;
  return make_string(rt, TRY(to_str(rt, value)));
}

Result<Value> escape(Runtime& rt, const Value& value) {
  if (value.is_string() && value.safe()) return value;
  Value text = TRY(soft_str(rt, value));
  TRY(rt.charge_bytes(text.text().size() * 5));
  std::string out;
  for (char c : text.text()) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&#34;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return make_string(rt, out, true);
}

}  // namespace banyan::jinja
