#include "ptx/line.h"

#include <algorithm>
#include <bit>

namespace banyan::ptx {
namespace {

bool is_number(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  return !text.empty() && text[0] >= '0' && text[0] <= '9';
}

// The place of a + or - that separates a base from an offset.
size_t offset_at(std::string_view text) {
  size_t plus = text.find('+');
  return plus != text.npos ? plus : text.find('-', 1);
}

// "+4", "+-4" or "-4"
int64_t parse_offset(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  return parse_integer(trim(text));
}

// Of an address.
std::string_view in_brackets(std::string_view text) {
  if (!text.starts_with('[') || !text.ends_with(']')) fail("{} is not an address", text);
  return trim(text.substr(1, text.size() - 2));
}

}  // namespace

Line::Line(std::string_view text, Names& names) : names_(names) {
  size_t end = std::min(text.find_first_of(" \t\n"), text.size());
  modifiers_ = split(text.substr(0, end), '.');
  // "shared::cta.b64" keeps its colons within one modifier.
  name_ = modifiers_.front();
  modifiers_.erase(modifiers_.begin());
  texts_ = split(text.substr(end), ',');
}

bool Line::take(std::string_view modifier) {
  auto found = std::ranges::find(modifiers_, modifier);
  if (found == modifiers_.end()) return false;
  modifiers_.erase(found);
  return true;
}

void Line::need(std::string_view modifier) {
  if (!take(modifier)) fail("{} is known with .{} only", name_, modifier);
}

std::string_view Line::take_prefix(std::string_view prefix) {
  auto found =
      std::ranges::find_if(modifiers_, [&](auto text) { return text.starts_with(prefix); });
  if (found == modifiers_.end()) return {};
  std::string_view text = *found;
  modifiers_.erase(found);
  return text;
}

bool Line::has_type() const {
  return std::ranges::any_of(modifiers_, [](auto text) { return parse_type(text).has_value(); });
}

Type Line::take_type() {
  auto found =
      std::ranges::find_if(modifiers_, [](auto text) { return parse_type(text).has_value(); });
  if (found == modifiers_.end()) fail("{} has no type", name_);
  Type type = *parse_type(*found);
  modifiers_.erase(found);
  return type;
}

std::string_view Line::take_next() {
  if (modifiers_.empty()) return {};
  std::string_view text = modifiers_.front();
  modifiers_.erase(modifiers_.begin());
  return text;
}

std::string_view Line::peek() const {
  return next_ < texts_.size() ? texts_[next_] : std::string_view();
}

std::string_view Line::text() {
  if (next_ == texts_.size()) fail("{} has too few operands", name_);
  return texts_[next_++];
}

Operand Line::add(Operand operand) {
  operands_.push_back(operand);
  return operand;
}

uint64_t Line::immediate(std::string_view text, Type type) const {
  bool is_bits = text.starts_with("0f") || text.starts_with("0F") || text.starts_with("0d") ||
                 text.starts_with("0D");
  if (!is_bits) return static_cast<uint64_t>(parse_integer(text));
  uint64_t bits = static_cast<uint64_t>(parse_integer("0x" + std::string(text.substr(2))));
  uint32_t bytes = text[1] == 'f' || text[1] == 'F' ? 4 : 8;
  if (bytes != type.bytes) fail("{} is no constant of {} bytes", text, type.bytes);
  return bits;
}

Operand Line::read(std::string_view text, Type type, bool any_width) {
  if (type == kPredicateType) {
    if (is_number(text)) {
      Operand operand = names_.constant(parse_integer(text) != 0 ? ~uint64_t{0} : 0, 4);
      operand.bytes = 0;
      return operand;
    }
    bool negated = text.starts_with('!');
    Operand operand = names_.find_register(negated ? text.substr(1) : text);
    if (operand.bytes != 0) fail("{} is not a predicate", text);
    operand.negated = negated;
    return operand;
  }
  if (is_number(text)) return names_.constant(immediate(text, type), type.bytes);
  if (!text.starts_with('%')) {
    size_t at = offset_at(text);
    if (auto address = names_.find_variable(trim(text.substr(0, at)))) {
      int64_t offset = at == text.npos ? 0 : parse_offset(text.substr(at));
      return names_.constant(*address + static_cast<uint64_t>(offset), type.bytes);
    }
  }
  Operand operand = names_.find_register(text);
  if (operand.bytes == 0 || (!any_width && operand.bytes != type.bytes) ||
      operand.bytes < type.bytes) {
    fail("{} has {} bytes where {} are needed", text, operand.bytes, type.bytes);
  }
  return operand;
}

Operand Line::value(Type type, bool any_width) {
  return add(read(text(), type, any_width));
}

Operand Line::result(Type type, bool any_width) {
  std::string_view name = text();
  if (name == "_") {
    sink(type);
    return operands_.back();
  }
  Operand operand = read(name, type, any_width);
  if (operand.constant) fail("{} cannot be written", name);
  operand.is_result = true;
  return add(operand);
}

void Line::sink(Type type) {
  Operand operand;
  operand.sink = true;
  operand.bytes = static_cast<uint8_t>(type.bytes);
  add(operand);
}

void Line::predicate() {
  add(read(text(), kPredicateType, false));
}

uint64_t Line::number() {
  return static_cast<uint64_t>(parse_integer(text()));
}

void Line::address() {
  add_address(in_brackets(text()));
}

size_t Line::address_and_values(Type type) {
  std::string_view all = in_brackets(text());
  size_t comma = all.find(',');
  if (comma == all.npos) fail("{} has no values", all);
  add_address(trim(all.substr(0, comma)));
  texts_.insert(texts_.begin() + static_cast<std::ptrdiff_t>(next_), trim(all.substr(comma + 1)));
  return values(type, false, false);
}

void Line::add_address(std::string_view text) {
  size_t at = offset_at(text);
  std::string_view base = trim(text.substr(0, at));
  int64_t offset = at == text.npos ? 0 : parse_offset(text.substr(at));
  Operand operand;
  if (auto address = names_.find_variable(base)) {
    operand = names_.constant(*address, 8);
  } else if (is_number(base)) {
    operand = names_.constant(static_cast<uint64_t>(parse_integer(base)), 8);
  } else {
    operand = names_.find_register(base);
    if (operand.bytes < 4) fail("{} is too small for an address", base);
  }
  operand.offset = offset;
  add(operand);
}

size_t Line::values(Type type, bool any_width, bool is_result) {
  std::string_view all = text();
  if (!all.starts_with('{')) {
    --next_;
    if (is_result) result(type, any_width);
    if (!is_result) value(type, any_width);
    return 1;
  }
  std::vector<std::string_view> parts = split(all.substr(1, all.size() - 2), ',');
  texts_.erase(texts_.begin() + static_cast<std::ptrdiff_t>(next_) - 1);
  --next_;
  texts_.insert(texts_.begin() + static_cast<std::ptrdiff_t>(next_), parts.begin(), parts.end());
  for (size_t i = 0; i < parts.size(); ++i) {
    if (is_result) result(type, any_width);
    if (!is_result) value(type, any_width);
  }
  return parts.size();
}

void Line::result_and_predicate(Type type) {
  std::vector<std::string_view> parts = split(text(), '|');
  texts_[--next_] = parts.front();
  result(type);
  Operand predicate;
  predicate.sink = true;
  if (parts.size() > 1 && parts[1] != "_") predicate = read(parts[1], kPredicateType, false);
  add(predicate);
}

void Line::check_complete() const {
  if (!modifiers_.empty()) fail("{} with .{} is not known", name_, modifiers_.front());
  if (next_ != texts_.size()) fail("{} has too many operands: {}", name_, texts_[next_]);
}

}  // namespace banyan::ptx
