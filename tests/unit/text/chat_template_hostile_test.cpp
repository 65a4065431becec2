// Templates that try to crash the process, exhaust its memory or keep it busy. Each must soon end
// in an error, or in text if it fits the budget; without limits they would take minutes.
#include <gtest/gtest.h>

#include <ctime>
#include <string>

#include "jinja/value.h"
#include "support/sanitized.h"
#include "text/chat_template.h"

namespace banyan::chat_template_hostile_test {
namespace {

// Of processor time, which others on the machine stretch.
#ifdef NDEBUG
constexpr double kLimitMs = test::kSanitized ? 5000 : 500;
#else
constexpr double kLimitMs = 5000;
#endif

std::string repeat(std::string_view text, size_t count) {
  std::string out;
  for (size_t i = 0; i < count; ++i) out += text;
  return out;
}

// Processor time of this thread: the machine may be busy with other things.
double thread_ms() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

// Parses and renders; the error's code and the time it took.
void expect_error(const std::string& source, ErrorCode code, const Json& variables) {
  double start = thread_ms();
  auto parsed = ChatTemplate::parse(source);
  std::string message = "none";
  ErrorCode found = ErrorCode::kIo;
  if (!parsed) {
    message = parsed.error().message;
    found = parsed.error().code;
  } else if (auto text = parsed->render(variables); !text) {
    message = text.error().message;
    found = text.error().code;
  }
  parsed = std::unexpected(Error{});  // the time to free it counts too
  EXPECT_LT(thread_ms() - start, kLimitMs) << source.substr(0, 200);
  EXPECT_EQ(found, code) << source.substr(0, 200) << "\n" << message;
}

void expect_exhausted(const std::string& source, const Json& variables = Json::object()) {
  expect_error(source, ErrorCode::kExhausted, variables);
}

void expect_invalid(const std::string& source, const Json& variables = Json::object()) {
  expect_error(source, ErrorCode::kInvalidArgument, variables);
}

TEST(HostileTemplate, NestedIfs) {
  expect_exhausted(repeat("{% if true %}", 5500) + "x" + repeat("{% endif %}", 5500));
}

TEST(HostileTemplate, NestedFors) {
  expect_exhausted(repeat("{% for x in [1] %}", 5500) + repeat("{% endfor %}", 5500));
}

TEST(HostileTemplate, UnclosedTags) {
  expect_exhausted(repeat("{% if x %}", 25'000));
}

TEST(HostileTemplate, DeepParentheses) {
  expect_exhausted("{{ " + repeat("(", 120'000) + repeat(")", 120'000) + " }}");
}

TEST(HostileTemplate, DeepLists) {
  expect_exhausted("{{ " + repeat("[", 120'000) + repeat("]", 120'000) + " }}");
}

TEST(HostileTemplate, DeepDicts) {
  expect_exhausted("{{ " + repeat("{1:", 60'000) + "1" + repeat("}", 60'000) + " }}");
}

TEST(HostileTemplate, DeepCalls) {
  expect_exhausted("{{ " + repeat("f(", 80'000) + repeat(")", 80'000) + " }}");
}

TEST(HostileTemplate, DeepSubscripts) {
  expect_exhausted("{{ " + repeat("a[", 80'000) + "1" + repeat("]", 80'000) + " }}");
}

TEST(HostileTemplate, LongUnaryChains) {
  expect_exhausted("{{ " + repeat("-", 200'000) + "1 }}");
  expect_exhausted("{{ " + repeat("not ", 60'000) + "1 }}");
}

TEST(HostileTemplate, LongOperatorChains) {
  expect_exhausted("{{ 1" + repeat("+1", 120'000) + " }}");
  expect_exhausted("{{ a" + repeat(".a", 120'000) + " }}");
  expect_exhausted("{{ a" + repeat("|e", 120'000) + " }}");
  expect_exhausted("{{ a" + repeat(" if a else a", 20'000) + " }}");
}

TEST(HostileTemplate, LongFlatChainsAreFine) {
  auto parsed = ChatTemplate::parse("{{ 1" + repeat(" ~ 1", 20'000) + " }}{{ 0" +
                                    repeat(" or 0", 20'000) + " }}");
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->render(Json::object()).value().size(), 20'002u);
}

TEST(HostileTemplate, RecursiveMacro) {
  expect_exhausted("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}");
  expect_exhausted("{% macro m(x) %}{{ m([x]) }}{{ m([x]) }}{% endmacro %}{{ m(1) }}");
}

TEST(HostileTemplate, BranchingMacros) {
  std::string source = "{% macro m0() %}x{% endmacro %}";
  for (int i = 1; i < 60; ++i) {
    std::string below = "{{ m" + std::to_string(i - 1) + "() }}";
    source += "{% macro m" + std::to_string(i) + "() %}" + below + below + "{% endmacro %}";
  }
  expect_exhausted(source + "{{ m59() }}");
}

TEST(HostileTemplate, RecursiveCaller) {
  expect_exhausted(
      "{% macro m() %}{% call m() %}{% endcall %}{{ caller }}{% endmacro %}"
      "{% call m() %}{% endcall %}");
}

TEST(HostileTemplate, RecursiveLoop) {
  expect_exhausted("{% for x in [1, 2] recursive %}{{ loop([1, 2]) }}{% endfor %}");
}

TEST(HostileTemplate, HugeRange) {
  expect_exhausted("{% for x in range(10**9) %}{% endfor %}");
  expect_exhausted("{% for x in range(-9223372036854775807, 9223372036854775807) %}{% endfor %}");
}

TEST(HostileTemplate, NestedLoops) {
  std::string source;
  for (char c = 'a'; c < 'k'; ++c) source += std::string("{% for ") + c + " in range(99999) %}";
  expect_exhausted(source + repeat("{% endfor %}", 10));
}

TEST(HostileTemplate, StringDoubling) {
  expect_exhausted(
      "{% set ns = namespace(x='ab') %}{% for i in range(99999) %}"
      "{% set ns.x = ns.x ~ ns.x %}{% endfor %}");
  expect_exhausted(
      "{% set ns = namespace(x='ab') %}{% for i in range(99999) %}"
      "{% set ns.x = ns.x + ns.x %}{% endfor %}");
  expect_exhausted(
      "{% set ns = namespace(x='ab') %}{% for i in range(99999) %}"
      "{% set ns.x = ns.x|replace('a', 'aaaaaaaaaa') %}{% endfor %}");
}

TEST(HostileTemplate, ListDoubling) {
  expect_exhausted(
      "{% set ns = namespace(x=[1]) %}{% for i in range(99999) %}"
      "{% set ns.x = ns.x + ns.x %}{% endfor %}");
  expect_exhausted(
      "{% set ns = namespace(x=[1]) %}{% for i in range(99999) %}"
      "{% set ns.x = ns.x * 2 %}{% endfor %}");
}

TEST(HostileTemplate, GrowingStrings) {
  expect_exhausted(
      "{% set ns = namespace(x='') %}{% for i in range(99999) %}"
      "{% set ns.x = ns.x ~ 'some text to add' %}{% endfor %}");
}

TEST(HostileTemplate, Repetition) {
  expect_exhausted("{{ 'x' * 10**12 }}");
  expect_exhausted("{{ 'xx' * 9223372036854775807 }}");
  expect_exhausted("{{ [1] * 10**12 }}");
  expect_exhausted("{% set x = 'x' * 10**6 %}{% for i in range(99999) %}{{ x }}{% endfor %}");
}

TEST(HostileTemplate, FormatWidths) {
  expect_exhausted("{{ '%999999999d' % 1 }}");
  expect_exhausted("{{ '%99999999999999999999d' % 1 }}");
  expect_exhausted("{{ '%.999999999f' % 1 }}");
  expect_exhausted("{{ '%*d' % (10**9, 1) }}");
  expect_exhausted("{{ '{:999999999}'.format(1) }}");
  expect_exhausted("{{ '{:0999999999,}'.format(1) }}");
  expect_exhausted("{{ '{:.999999999f}'.format(1.5) }}");
  expect_exhausted("{{ '{:{}}'.format(1, 10**9) }}");
}

TEST(HostileTemplate, Padding) {
  expect_exhausted("{{ 'x'.center(10**12) }}");
  expect_exhausted("{{ 'x'.ljust(9223372036854775807) }}");
  expect_exhausted("{{ 'x'.zfill(10**12) }}");
  expect_exhausted("{{ 'x'|center(10**12) }}");
  expect_exhausted("{{ 'x'|indent(10**12, true) }}");
  expect_exhausted("{{ [1]|tojson(indent=10**12) }}");
  expect_exhausted("{{ [1]|batch(10**12, 0)|list }}");
  expect_exhausted("{{ [1]|slice(10**12)|list }}");
}

TEST(HostileTemplate, IndentedDeepJson) {
  Json deep = 1;
  for (int i = 0; i < 200; ++i) deep = Json::array({deep, deep.is_array() ? Json(1) : Json(2)});
  expect_exhausted("{{ x|tojson(indent=100000) }}", {{"x", deep}});
}

TEST(HostileTemplate, PowerTowers) {
  expect_invalid("{{ 9**9**9**9 }}");
  expect_invalid("{{ 2**63 }}");
  expect_invalid("{{ 10**10**10**10 }}");
  expect_invalid("{{ 9223372036854775807 + 1 }}");
  expect_invalid("{{ -9223372036854775807 * 2 }}");
  expect_invalid("{{ (0 - 9223372036854775807 - 1) // -1 }}");
}

TEST(HostileTemplate, QuadraticReplace) {
  expect_exhausted("{% set x = 'a' * 3000000 %}{{ x.replace('', 'b' * 1000000) }}");
  expect_exhausted("{% set x = 'a' * 1000000 %}{{ x|replace('a', x) }}");
}

TEST(HostileTemplate, QuadraticSearch) {
  // Naive search takes needle times haystack here.
  expect_exhausted(
      "{% set x = 'a' * 2000000 %}{% set y = 'a' * 1000000 ~ 'b' %}"
      "{% for i in range(99999) %}{{ y in x }}{{ x.rfind('b' ~ y) }}{{ x.count(y) }}"
      "{{ x.split(y)|length }}{{ x.rsplit(y)|length }}{{ x.rpartition(y)[0] == x }}{% endfor %}");
}

TEST(HostileTemplate, HugeSplits) {
  expect_exhausted(
      "{% set x = 'a ' * 1000000 %}{% for i in range(999) %}"
      "{% set y = x.split(' ') %}{% set z = x.split() %}{% set w = x|list %}"
      "{% set v = x.splitlines() %}{% endfor %}");
}

TEST(HostileTemplate, HugeSorts) {
  expect_exhausted(
      "{% set x = range(99999)|list %}{% for i in range(99) %}"
      "{% set y = (x + x)|sort(reverse=true)|unique|list %}{% endfor %}");
  expect_exhausted("{% set x = 'a' * 1000000 %}{{ ([x ~ 1, x ~ 2] * 1000)|sort|length }}");
}

TEST(HostileTemplate, HugeJoins) {
  expect_exhausted("{% set x = 'a' * 100000 %}{{ range(99999)|join(x)|length }}");
  expect_exhausted("{% set x = 'a' * 100000 %}{{ x.join(['b'] * 99999)|length }}");
}

TEST(HostileTemplate, SelfReference) {
  expect_exhausted("{% set ns = namespace() %}{% set ns.x = ns %}{{ ns }}");
  expect_exhausted("{% set ns = namespace() %}{% set ns.x = [ns] %}{{ ns.x }}");
  expect_exhausted("{% set ns = namespace() %}{% set ns.x = {'a': ns} %}{{ ns.x ~ '' }}");
  expect_invalid("{% set ns = namespace() %}{% set ns.x = [ns] %}{{ ns.x|tojson }}");
}

TEST(HostileTemplate, DeepValues) {
  std::string grow =
      "{% set ns = namespace(x=[], y=[]) %}{% for i in range(5000) %}{% set ns.x = [ns.x] %}"
      "{% set ns.y = [ns.y] %}{% endfor %}";
  expect_exhausted(grow + "{{ ns.x }}");
  expect_exhausted(grow + "{{ ns.x|tojson }}");
  expect_exhausted(grow + "{{ ns.x == ns.y }}");
  expect_exhausted(grow + "{{ ns.x < ns.y }}");
  expect_exhausted(grow + "{{ [ns.x, ns.y]|sort }}");
  std::string tuples =
      "{% set ns = namespace(x=()) %}{% for i in range(5000) %}{% set ns.x = (ns.x,) %}"
      "{% endfor %}";
  expect_exhausted(tuples + "{{ {ns.x: 1} }}");
  expect_exhausted(tuples + "{{ [ns.x]|unique|list }}");
}

TEST(HostileTemplate, WideValues) {
  std::string grow =
      "{% set ns = namespace(x=[1], y=[1]) %}{% for i in range(60) %}"
      "{% set ns.x = [ns.x, ns.x] %}{% set ns.y = [ns.y, ns.y] %}{% endfor %}";
  expect_exhausted(grow + "{{ ns.x }}");
  expect_exhausted(grow + "{{ ns.x|tojson }}");
  expect_exhausted(grow + "{{ ns.x == ns.y }}");
  expect_exhausted(grow + "{{ ns.x|string|length }}");
}

TEST(HostileTemplate, DeepVariables) {
  Json deep = 1;
  for (int i = 0; i < 2000; ++i) deep = Json::array({std::move(deep)});
  expect_exhausted("{{ x }}", {{"x", deep}});
}

TEST(HostileTemplate, ManyVariables) {
  std::string source = "{% for i in range(99999) %}";
  for (int i = 0; i < 13'000; ++i) source += "{% set v" + std::to_string(i) + "=1 %}";
  expect_exhausted(source + "{% endfor %}");
}

TEST(HostileTemplate, ManyArguments) {
  std::string names;
  for (int i = 0; i < 20'000; ++i) names += (i ? ",a" : "a") + std::to_string(i) + "=1";
  expect_error(
      "{% macro m(" + names + ") %}{% endmacro %}" + repeat("{{ m(a1=2, a2=3, a19999=4) }}", 100),
      ErrorCode::kExhausted, Json::object());
}

TEST(HostileTemplate, ManyKeywords) {
  std::string names;
  for (int i = 0; i < 25'000; ++i) names += (i ? ",a" : "a") + std::to_string(i) + "=1";
  expect_invalid("{{ dict(" + names + ").nope.nope }}");
  expect_invalid("{{ '{x}'.format(" + names + ") }}");
}

TEST(HostileTemplate, ManyStatements) {
  auto parsed = ChatTemplate::parse(repeat("{{ x }}", 37'000));
  ASSERT_TRUE(parsed.has_value());
  EXPECT_TRUE(parsed->render({{"x", 1}}).has_value());
}

TEST(HostileTemplate, LazyConditions) {
  expect_exhausted(
      "{% for x in range(99999) if range(99999)|select('eq', 1)|list|length > 2 %}"
      "{% endfor %}");
}

TEST(HostileTemplate, FilterChains) {
  expect_exhausted(
      "{% for x in range(99999) %}{{ range(99999)|map('string')|map('upper')|list"
      "|length }}{% endfor %}");
  expect_exhausted(
      "{{ [[[1]]]|map('map', 'map', 'string')|map('list')|list }}"
      "{% for i in range(99999) %}{{ range(999)|sum }}{% endfor %}");
}

TEST(HostileTemplate, ReachingForTheHost) {
  expect_invalid("{{ ''.__class__.__mro__[1].__subclasses__() }}");
  expect_invalid("{{ x.__init__.__globals__ }}", {{"x", 1}});
  expect_invalid("{{ '{0.__class__.__init__}'.format(x) }}", {{"x", 1}});
  expect_invalid("{{ (x|attr('__class__')).y }}", {{"x", 1}});
  expect_invalid("{{ range.__call__(3) }}");
}

TEST(HostileTemplate, LongNames) {
  std::string name = repeat("n", 100'000);
  expect_exhausted("{% for i in range(99999) %}{{ x." + name + " }}{% endfor %}",
                   {{"x", Json::object()}});
  std::string loop = "{% set n = 'n' * 20000 %}{% for i in range(99999) %}";
  expect_exhausted(loop + "{{ x[n] }}{% endfor %}", {{"x", {{"a", 1}}}});
  expect_exhausted(loop + "{{ x|attr(n) }}{% endfor %}", {{"x", {{"a", 1}}}});
  expect_exhausted(loop + "{{ {(n, n, n): 1} }}{% endfor %}");
  expect_exhausted(loop + "{{ {(n, n, n, n): 1}[(n, n, n, n)] }}{% endfor %}");
}

TEST(HostileTemplate, ManyLongKeywords) {
  std::string dict =
      "{% set ns = namespace(d=[]) %}{% for i in range(2000) %}"
      "{% set ns.d = ns.d + [('k' * 1000 ~ i, i)] %}{% endfor %}{% set d = dict(ns.d) %}";
  expect_exhausted(dict + "{% set f = ('{' ~ 'k' * 1000 ~ '1999}') * 100 %}" +
                   "{% for i in range(99999) %}{{ f.format(**d)|length }}{% endfor %}");
  expect_exhausted(
      "{% set n = 'k' * 200000 %}{% set d = {n ~ 1: 1, n ~ 2: 2, n ~ 3: 3} %}" +
      std::string("{% for i in range(99999) %}{{ dict(a=1, **d)|length }}{% endfor %}"));
}

TEST(HostileTemplate, EqualLongTexts) {
  std::string texts =
      "{% set x = 'a' * 300000 ~ 'b' %}{% set y = 'a' * 300000 ~ 'b' %}"
      "{% set z = 'a' * 300000 ~ 'c' %}{% set l = [y] * 10000 %}{% for i in range(99999) %}";
  expect_exhausted(texts + "{{ x is sameas y }}{% endfor %}");
  expect_exhausted(texts + "{{ x == y }}{% endfor %}");
  expect_exhausted(texts + "{{ z in l }}{% endfor %}");
  expect_exhausted(texts + "{{ [x] == [y] }}{% endfor %}");
  expect_exhausted(texts + "{{ l.count(z) }}{% endfor %}");
}

TEST(HostileTemplate, CollidingKeys) {
  // Multiples of a large power of two, whose doubles differ in their highest bits only.
  expect_exhausted(
      "{% set ns = namespace(d={}) %}{% for j in range(99999) %}"
      "{% set d = dict(range(60000)|map('int')|batch(2)) %}{% for i in range(999) %}"
      "{{ d[i * 2**43] }}{{ {i * 2**43: 1, i * 2**42: 2}[i] }}{% endfor %}{% endfor %}");
}

TEST(HostileTemplate, LengthsOfParts) {
  std::string text = "{% set x = 'a' * 3000000 %}{% for i in range(99999) %}";
  for (const char* part : {"x[1:]", "x.strip('b')", "x.removeprefix('a')", "x.partition('a')[2]"}) {
    expect_exhausted(text + "{{ " + part + "|length }}{% endfor %}");
  }
}

TEST(HostileTemplate, ShortNeedles) {
  for (const char* size : {"8", "100", "200", "255"}) {
    std::string needle = std::string("{% set y = 'a' * ") + size + " %}";
    expect_exhausted(needle +
                     "{% set x = (y[1:] ~ 'c') * (1000000 // y|length) %}"
                     "{% for i in range(99999) %}{{ y in x }}{{ x.find(y) }}"
                     "{{ x.split(y)|length }}{{ x.replace(y, 'z')|length }}{% endfor %}");
    expect_exhausted(needle +
                     "{% set x = 'a' * 1000000 %}{% set y = y[2:] ~ 'ba' %}"
                     "{% for i in range(99999) %}{{ y in x }}{{ x.rfind(y) }}"
                     "{{ x.count(y) }}{{ x.rsplit(y)|length }}{% endfor %}");
  }
}

TEST(HostileTemplate, CostlyCharacters) {
  expect_exhausted(
      "{% set x = '\x01' * 1000000 %}{% for i in range(99) %}{{ x|tojson }}{% endfor %}");
  expect_exhausted("{% set x = ['\x01' * 100000] %}{% for i in range(999) %}{{ x }}{% endfor %}");
  expect_exhausted("{% set x = 'a ' * 100000 %}{% for i in range(999) %}{{ x|title }}{% endfor %}");
  expect_exhausted("{% set x = '1' * 100000 %}{% for i in range(999) %}{{ x|float }}{% endfor %}");
  expect_exhausted("{% set x = '1.' * 100000 %}{% for i in range(999) %}{{ x|int }}{% endfor %}");
}

TEST(HostileTemplate, KeptErrorsCountAsMemory) {
  jinja::Heap heap;
  size_t before = heap.bytes();
  heap.keep({ErrorCode::kInvalidArgument, std::string(1000, 'x')});
  EXPECT_GE(heap.bytes(), before + 1000);
}

TEST(HostileTemplate, ErrorsCutLongNames) {
  auto parsed = ChatTemplate::parse("{{ y['\u20ac' * 1000000].z }}");
  auto text = parsed->render({{"y", 1}});
  ASSERT_FALSE(text.has_value());
  std::string cut = repeat("\u20ac", 26) + "...'";
  EXPECT_TRUE(text.error().message.ends_with(cut)) << text.error().message;
}

TEST(HostileTemplate, DateFormats) {
  expect_exhausted("{{ strftime_now('%Y' * 10000) }}");
  expect_exhausted("{% for i in range(99999) %}{{ strftime_now('%9999c' * 100) }}{% endfor %}");
}

}  // namespace
}  // namespace banyan::chat_template_hostile_test
