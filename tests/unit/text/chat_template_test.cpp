// Chat templates: variables, errors, and budgets that long conversations must fit.
#include "text/chat_template.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace banyan::chat_template_test {
namespace {

Result<std::string> render(std::string_view source, const Json& variables = Json::object(),
                           TemplateLimits limits = {}) {
  auto parsed = ChatTemplate::parse(source, limits);
  if (!parsed) return std::unexpected(parsed.error());
  return parsed->render(variables, {.clock = [] { return std::time_t{0}; }});
}

Error error_of(std::string_view source, const Json& variables = Json::object(),
               TemplateLimits limits = {}) {
  auto result = render(source, variables, limits);
  return result ? Error{ErrorCode::kIo, "no error: " + *result} : result.error();
}

TEST(ChatTemplate, RendersMessages) {
  Json variables = {{"messages", {{{"role", "user"}, {"content", "Hi"}}}},
                    {"add_generation_prompt", true}};
  auto text = render(
      "{% for m in messages %}<|{{ m.role }}|>{{ m['content'] }}\n{% endfor %}"
      "{% if add_generation_prompt %}<|assistant|>{% endif %}",
      variables);
  ASSERT_TRUE(text.has_value()) << text.error().message;
  EXPECT_EQ(*text, "<|user|>Hi\n<|assistant|>");
}

TEST(ChatTemplate, RaisedMessagesComeBackAsTheyAre) {
  Error error = error_of(
      "{% if true %}\n{{ raise_exception('Roles must ' ~ 'alternate') }}"
      "{% endif %}");
  EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(error.message, "Roles must alternate");
}

TEST(ChatTemplate, ErrorsNameTheLineAndTheCause) {
  EXPECT_EQ(error_of("a\nb\n{{ foo.bar }}").message, "chat template, line 3: 'foo' is undefined");
  EXPECT_EQ(error_of("{{ {'a': 1}.b.c }}").message,
            "chat template, line 1: 'dict object' has no attribute 'b'");
  EXPECT_EQ(error_of("\n{% nope %}").message, "chat template, line 2: unknown tag 'nope'");
  EXPECT_EQ(error_of("\n\n{{ 1 | nope }}").message,
            "chat template, line 3: No filter named 'nope'");
  EXPECT_EQ(error_of("\n{% if x %}\n").message,
            "chat template, line 2: unexpected end of template: 'if' is not closed");
  EXPECT_EQ(error_of("{% include 'other' %}").code, ErrorCode::kUnsupported);
  EXPECT_EQ(error_of("{{ 'x' }").code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(error_of("\xff").code, ErrorCode::kCorrupt);
}

TEST(ChatTemplate, RefusesVariablesThatAreNoObject) {
  EXPECT_EQ(error_of("x", Json::array()).code, ErrorCode::kInvalidArgument);
}

TEST(ChatTemplate, ListsAndDictsCannotBeChanged) {
  Json variables = {{"l", {1}}, {"d", {{"a", 1}}}};
  EXPECT_EQ(error_of("{{ l.append(2) }}", variables).message,
            "chat template, line 1: access to attribute 'append' of 'list' object is unsafe.");
  EXPECT_EQ(error_of("{{ d.update({}) }}", variables).code, ErrorCode::kInvalidArgument);
}

TEST(ChatTemplate, TheClockIsTheCallers) {
  auto parsed = ChatTemplate::parse("{{ strftime_now('%Y') }}");
  ASSERT_TRUE(parsed.has_value());
  auto text = parsed->render(Json::object(), {.clock = [] { return std::time_t{1'000'000'000}; }});
  EXPECT_EQ(text.value(), "2001");
  EXPECT_GE(parsed->render(Json::object()).value(), "2024");
}

TEST(ChatTemplate, TheOutputIsLimited) {
  TemplateLimits limits{.output_bytes_max = 100};
  EXPECT_TRUE(render("{{ 'x' * 100 }}", Json::object(), limits).has_value());
  EXPECT_EQ(error_of("{{ 'x' * 101 }}", Json::object(), limits).code, ErrorCode::kExhausted);
  EXPECT_EQ(error_of("abc", Json::object(), {.source_bytes_max = 2}).code, ErrorCode::kExhausted);
}

TEST(ChatTemplate, LongConversationsFitTheBudget) {
  Json messages = Json::array();
  for (int i = 0; i < 100'000; ++i) {
    messages.push_back({{"role", i % 2 == 0 ? "user" : "assistant"}, {"content", "Hello there"}});
  }
  auto text = render(
      "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
      "{{ raise_exception('no') }}{% endif %}{{ '<|' ~ m.role ~ '|>' + m.content|trim }}"
      "{% endfor %}",
      {{"messages", messages}});
  ASSERT_TRUE(text.has_value()) << text.error().message;
  EXPECT_GT(text->size(), 1'900'000u);
}

TEST(ChatTemplate, LargeMessagesFitTheBudget) {
  std::string large(10 << 20, 'x');
  auto text =
      render("{{ m.strip().split('</think>')[-1] | replace('a', 'b') | tojson }}", {{"m", large}});
  ASSERT_TRUE(text.has_value()) << text.error().message;
  EXPECT_EQ(text->size(), large.size() + 2);
}

// Templates for images look at each part of a message, and a plain text's parts are characters.
TEST(ChatTemplate, LoopsOverTheCharactersOfLongTextsFitTheBudget) {
  Json messages = Json::array();
  for (int i = 0; i < 10; ++i) messages.push_back({{"content", std::string(100'000, 'x')}});
  auto text = render(
      "{% for m in messages %}{% for content in m['content'] %}"
      "{% if content['type'] == 'image' %}{% set n.images = true %}"
      "{% elif content['type'] == 'text' %}{{ content['text'] }}{% endif %}"
      "{% endfor %}{{ m['content'] | trim }}{% endfor %}",
      {{"messages", messages}}, {.memory_bytes_max = 32 << 20});
  ASSERT_TRUE(text.has_value()) << text.error().message;
  EXPECT_EQ(text->size(), 1'000'000u);
}

TEST(ChatTemplate, TextsAndListsBuiltPieceByPieceFitTheBudget) {
  Json messages = Json::array();
  for (int i = 0; i < 5000; ++i) messages.push_back({{"content", std::string(200, 'x')}});
  auto text = render(
      "{% set ns = namespace(a='', b='', l=[]) %}{% for m in messages %}"
      "{% set ns.a = ns.a ~ '<' ~ m.content ~ '>' %}{% set ns.b = ns.b + m.content + 'y' * 300 %}"
      "{% set ns.l = ns.l + [m] %}{% endfor %}{{ ns.a }} {{ ns.b }} {{ ns.l|length }}",
      {{"messages", messages}}, {.memory_bytes_max = 16 << 20});
  ASSERT_TRUE(text.has_value()) << text.error().message;
  EXPECT_EQ(text->size(), 5000u * (202 + 500) + 6);
}

TEST(ChatTemplate, JoiningLeavesTheOperandsAsTheyAre) {
  std::string a(300, 'a');
  auto text = render(
      "{% set b = a ~ 'b' %}{% set c = b ~ 'c' %}{% set d = b ~ 'd' %}{% set e = c ~ 'e' %}"
      "{% set f = c[1:] ~ 'f' %}{% set g = c ~ 'g' %}"
      "{{ [b, c, d, e, f, g]|map('replace', a, '')|join(' ') }} {{ f|length }}"
      "{% set l = [1] * 20 %}{% set m = l + [2] %}{% set n = m + [3] %}{% set o = m + [4] %}"
      "{{ m[20:] }}{{ n[20:] }}{{ o[20:] }}",
      {{"a", a}});
  ASSERT_TRUE(text.has_value()) << text.error().message;
  EXPECT_EQ(*text, "b bc bd bce " + a.substr(1) + "bcf bcg 302[2][2, 3][2, 4]");
}

TEST(ChatTemplate, NumbersAtTheEdgeOf64BitsAreExactOrRefused) {
  Json edges = {{"low", INT64_MIN}, {"high", INT64_MAX}};
  EXPECT_EQ(render("{{ range(low, high, 2**62)|list }}", edges).value(),
            "[-9223372036854775808, -4611686018427387904, 0, 4611686018427387904]");
  EXPECT_EQ(
      render("{{ range(low, high, 2**62)[3] }} {{ range(low, high, 2**62)[1:3]|list }}", edges)
          .value(),
      "4611686018427387904 [-4611686018427387904, 0]");
  EXPECT_EQ(error_of("{{ range(low, high, 2**62)[::2] }}", edges).code,
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(error_of("{{ range(low, high, 2**62)[3:] }}", edges).code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(
      render("{{ 'a'.zfill(low) }}{{ 'a'.ljust(low) }}{{ 'a'.rjust(low) }}{{ 'a'.center(low) }}"
             "{{ 'a'|center(low) }}{{ [1, 2]|batch(low, 0)|list }}{{ [1]|slice(low, 0)|list }}"
             "{{ 'a b'.split(' ', low) }}{{ 'a b'.split(None, low) }}"
             "{{ 'a b'.rsplit(None, low) }}{{ 'aa'.replace('a', 'b', low) }}",
             edges)
          .value(),
      "aaaaa[[1, 2]][]['a', 'b']['a', 'b']['a', 'b']bb");
  EXPECT_EQ(error_of("{{ [1]|slice(high)|list }}", edges).code, ErrorCode::kExhausted);
  Error error = error_of("{{ x }}", {{"x", {{"n", 18446744073709551615u}}}});
  EXPECT_NE(error.message.find("18446744073709551615"), std::string::npos) << error.message;
}

TEST(ChatTemplate, RefusesByNameWhatChatTemplatesHaveNoUseFor) {
  const std::pair<const char*, const char*> kRefused[] = {
      {"{{ 'a'.casefold() }}", "casefold"},
      {"{{ 'a'.swapcase() }}", "swapcase"},
      {"{{ 'a'.expandtabs(2) }}", "expandtabs"},
      {"{{ 'a'.isidentifier() }}", "isidentifier"},
      {"{{ '{a}'.format_map({'a': 1}) }}", "format_map"},
      {"{{ {}.fromkeys([1]) }}", "fromkeys"},
      {"{{ 5 .bit_length() }}", "bit_length"},
      {"{{ 'a' | urlencode }}", "urlencode"},
      {"{{ {'a': 1} | xmlattr }}", "xmlattr"},
      {"{{ 1000 | filesizeformat }}", "filesizeformat"},
      {"{{ 'a' | wordwrap(3) }}", "wordwrap"},
      {"{{ lipsum() }}", "lipsum"},
      {"{{ '%a' % 1 }}", "the conversion a"},
      {"{{ '{!a}'.format(1) }}", "the conversion a"},
      {"{{ '{:n}'.format(1) }}", "the format n"},
      {"{{ 'stra\u00dfe' | upper }}", "the case of U+00DF"},
      {"{{ '\u03a3' | lower }}", "the case of U+03A3"},
      {"{{ '\u0130'.lower() }}", "the case of U+0130"},
      {"{{ '\ufb01'.title() }}", "the case of U+FB01"},
  };
  for (const auto& [source, name] : kRefused) {
    Error error = error_of(source);
    EXPECT_EQ(error.code, ErrorCode::kUnsupported) << source;
    EXPECT_NE(error.message.find(std::string(name) + " is not supported"), std::string::npos)
        << error.message;
  }
}

TEST(ChatTemplate, RefusesTextThatIsNotUtf8) {
  EXPECT_EQ(error_of("{{ x }}", {{"x", "ab\xc3"}}).message,
            "a text in the variables is not UTF-8 at byte 2");
  EXPECT_EQ(error_of("{{ x }}", {{"x", {{"\xff", 1}}}}).code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(error_of("a\xff").code, ErrorCode::kCorrupt);
}

TEST(ChatTemplate, SurrogatesAreNoCharacters) {
  EXPECT_EQ(render("{{ '%c' % 233 }}{{ '{:c}'.format(0x10ffff) }}").value(), "\u00e9\U0010ffff");
  for (const char* source :
       {"{{ '%c' % 55296 }}", "{{ '{:c}'.format(57343) }}", "{{ '%c' % -1 }}"}) {
    EXPECT_NE(error_of(source).message.find("is not a Unicode code point"), std::string::npos);
  }
}

TEST(ChatTemplate, OneTemplateRendersOnManyThreads) {
  auto parsed =
      ChatTemplate::parse("{% for i in range(50) %}{{ 'é'|length + i }}{% endfor %}{{ x }}");
  ASSERT_TRUE(parsed.has_value());
  std::string expected = parsed->render({{"x", 1}}).value();
  std::vector<std::thread> threads;
  std::vector<std::string> texts(8);
  for (std::string& text : texts) {
    threads.emplace_back([&] { text = parsed->render({{"x", 1}}).value_or("failed"); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& text : texts) EXPECT_EQ(text, expected);
}

}  // namespace
}  // namespace banyan::chat_template_test
