// The tests that follow `is`.
#include "jinja/library/builtins.h"

namespace banyan::jinja {
namespace {

using Predicate = bool (*)(const Value&);

template <Predicate holds>
Result<Value> test(Runtime&, const Value& value, const Args&) {
  return make_bool(holds(value));
}

bool defined(const Value& v) {
  return !v.is_undefined();
}
bool undefined(const Value& v) {
  return v.is_undefined();
}
bool none(const Value& v) {
  return v.is_none();
}
bool boolean(const Value& v) {
  return v.is(Kind::kBool);
}
bool is_true(const Value& v) {
  return v.is(Kind::kBool) && v.boolean;
}
bool is_false(const Value& v) {
  return v.is(Kind::kBool) && !v.boolean;
}
bool integer(const Value& v) {
  return v.is(Kind::kInt);
}
bool real(const Value& v) {
  return v.is(Kind::kFloat);
}
bool string(const Value& v) {
  return v.is_string();
}
bool number(const Value& v) {
  return v.is_number();
}
bool mapping(const Value& v) {
  return v.is(Kind::kDict);
}
bool escaped(const Value& v) {
  return v.is_string() && v.safe();
}
bool sequence(const Value& v) {
  return v.is_undefined() || v.is_string() || v.is_sequence() || v.is(Kind::kDict) ||
         v.is(Kind::kRange);
}

Result<Value> remainder_is(Runtime& rt, const Value& value, const Value& by, int64_t expected) {
  Value remainder = TRY(arithmetic(rt, Arithmetic::kModulo, value, by));
  return make_bool(TRY(equals(rt, remainder, make_int(expected))));
}

Result<Value> odd(Runtime& rt, const Value& value, const Args&) {
  return remainder_is(rt, value, make_int(2), 1);
}

Result<Value> even(Runtime& rt, const Value& value, const Args&) {
  return remainder_is(rt, value, make_int(2), 0);
}

Result<Value> divisibleby(Runtime& rt, const Value& value, const Args& args) {
  return remainder_is(rt, value, args[0], 0);
}

Result<Value> cased(Runtime& rt, const Value& value, std::string_view method) {
  Value text = TRY(make_string(rt, TRY(to_str(rt, value))));
  return call_builtin(rt, *find_method(Kind::kString, method), text, {});
}

Result<Value> lower(Runtime& rt, const Value& value, const Args&) {
  return cased(rt, value, "islower");
}

Result<Value> upper(Runtime& rt, const Value& value, const Args&) {
  return cased(rt, value, "isupper");
}

// Python shares equal literals but not equal results; comparing text is the closest match.
Result<Value> same_as(Runtime& rt, const Value& value, const Args& args) {
  bool texts = value.is_string() && args[0].is_string() && value.safe() == args[0].safe();
  return make_bool(texts ? TRY(equals(rt, value, args[0])) : identical(value, args[0]));
}

Result<Value> is_in(Runtime& rt, const Value& value, const Args& args) {
  return make_bool(TRY(contains(rt, args[0], value)));
}

Result<Value> is_filter(Runtime&, const Value& value, const Args&) {
  if (value.is(Kind::kList) || value.is(Kind::kDict)) {
    return invalid_argument("unhashable type: '{}'", type_name(value));
  }
  return make_bool(value.is_string() && find_filter(value.text()) != nullptr);
}

Result<Value> is_test(Runtime&, const Value& value, const Args&) {
  if (value.is(Kind::kList) || value.is(Kind::kDict)) {
    return invalid_argument("unhashable type: '{}'", type_name(value));
  }
  return make_bool(value.is_string() && find_test(value.text()) != nullptr);
}

Result<Value> equal(Runtime& rt, const Value& value, const Args& args) {
  return make_bool(TRY(equals(rt, value, args[0])));
}

Result<Value> not_equal(Runtime& rt, const Value& value, const Args& args) {
  return make_bool(!TRY(equals(rt, value, args[0])));
}

template <bool less, bool equal>
Result<Value> compared(Runtime& rt, const Value& value, const Args& args) {
  std::partial_ordering ordering = TRY(order(rt, value, args[0]));
  return make_bool((less ? ordering < 0 : ordering > 0) || (equal && ordering == 0));
}

constexpr Builtin kTests[] = {
    {"defined", "", 0, test<defined>},
    {"undefined", "", 0, test<undefined>},
    {"none", "", 0, test<none>},
    {"string", "", 0, test<string>},
    {"mapping", "", 0, test<mapping>},
    {"iterable", "", 0, test<is_iterable>},
    {"sequence", "", 0, test<sequence>},
    {"boolean", "", 0, test<boolean>},
    {"true", "", 0, test<is_true>},
    {"false", "", 0, test<is_false>},
    {"integer", "", 0, test<integer>},
    {"float", "", 0, test<real>},
    {"number", "", 0, test<number>},
    {"callable", "", 0, test<is_callable>},
    {"escaped", "", 0, test<escaped>},
    {"odd", "", 0, odd},
    {"even", "", 0, even},
    {"divisibleby", "num", 1, divisibleby},
    {"lower", "", 0, lower},
    {"upper", "", 0, upper},
    {"sameas", "other", 1, same_as},
    {"in", "seq", 1, is_in},
    {"filter", "", 0, is_filter},
    {"test", "", 0, is_test},
    {"==", "/other", 1, equal},
    {"eq", "/other", 1, equal},
    {"equalto", "/other", 1, equal},
    {"!=", "/other", 1, not_equal},
    {"ne", "/other", 1, not_equal},
    {"<", "/other", 1, compared<true, false>},
    {"lt", "/other", 1, compared<true, false>},
    {"lessthan", "/other", 1, compared<true, false>},
    {"<=", "/other", 1, compared<true, true>},
    {"le", "/other", 1, compared<true, true>},
    {">", "/other", 1, compared<false, false>},
    {"gt", "/other", 1, compared<false, false>},
    {"greaterthan", "/other", 1, compared<false, false>},
    {">=", "/other", 1, compared<false, true>},
    {"ge", "/other", 1, compared<false, true>},
};

}  // namespace

std::span<const Builtin> tests() {
  return kTests;
}

}  // namespace banyan::jinja
