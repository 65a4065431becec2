// The registry of tool-call and reasoning formats: what each writes, reads back and forces.
#include "llm/messages/tool_calls.h"

#include <gtest/gtest.h>

#include <array>
#include <map>

#include "base/file.h"
#include "base/space.h"
#include "support/shared.h"
#include "unit/llm/read_message.h"

namespace banyan::tool_calls_test {
namespace {

using namespace test::messages;

// A call of get_weather("Rome", 3) as each format's models write it.
const std::map<std::string, std::string> kCalls = {
    {"qwen",
     "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Rome\", \"days\": 3}}\n"
     "</tool_call>"},
    {"llama3", R"({"name": "get_weather", "parameters": {"city": "Rome", "days": 3}})"},
    {"deepseekv3",
     "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n"
     "{\"city\": \"Rome\", \"days\": 3}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>"},
    {"deepseekv31",
     "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>"
     "{\"city\": \"Rome\", \"days\": 3}<｜tool▁call▁end｜><｜tool▁calls▁end｜>"},
    {"deepseekv32",
     "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"get_weather\">\n"
     "<｜DSML｜parameter name=\"city\" string=\"true\">Rome</｜DSML｜parameter>\n"
     "<｜DSML｜parameter name=\"days\" string=\"false\">3</｜DSML｜parameter>\n"
     "</｜DSML｜invoke>\n</｜DSML｜function_calls>"},
    {"longcat_xml",
     "<longcat_tool_call>get_weather\n<longcat_arg_key>city</longcat_arg_key>\n"
     "<longcat_arg_value>Rome</longcat_arg_value>\n<longcat_arg_key>days</longcat_arg_key>\n"
     "<longcat_arg_value>3</longcat_arg_value>\n</longcat_tool_call>"},
    {"longcat",
     "<longcat_tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Rome\", "
     "\"days\": 3}}\n</longcat_tool_call>"},
    {"kimi_k2",
     "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0"
     "<|tool_call_argument_begin|>{\"city\": \"Rome\", \"days\": 3}<|tool_call_end|>"
     "<|tool_calls_section_end|>"},
    {"glm45",
     "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Rome</arg_value>\n"
     "<arg_key>days</arg_key>\n<arg_value>3</arg_value>\n</tool_call>"},
    {"qwen3_coder",
     "<tool_call>\n<function=get_weather>\n<parameter=city>\nRome\n</parameter>\n"
     "<parameter=days>\n3\n</parameter>\n</function>\n</tool_call>"},
    {"minimax-m2",
     "<minimax:tool_call>\n<invoke name=\"get_weather\">\n<parameter "
     "name=\"city\">Rome</parameter>\n"
     "<parameter name=\"days\">3</parameter>\n</invoke>\n</minimax:tool_call>"},
    {"minimax-m3",
     "]<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name=\"get_weather\">"
     "]<]minimax[>[<city>Rome]<]minimax[>[</city>]<]minimax[>[<days>3]<]minimax[>[</days>"
     "]<]minimax[>[</invoke>\n]<]minimax[>[</tool_call>"},
    {"mistral", "[TOOL_CALLS]get_weather[ARGS]{\"city\": \"Rome\", \"days\": 3}"},
    {"mistral_list",
     "[TOOL_CALLS][{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Rome\", \"days\": 3}}]"},
    {"granite",
     "<|tool_call|>[{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Rome\", \"days\": "
     "3}}]"},
    {"hunyuan_a13b",
     "<tool_calls>[{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Rome\", \"days\": 3}}]"
     "</tool_calls>"},
    {"seed_oss",
     "<seed:tool_call>\n<function=get_weather>\n<parameter=city>Rome</parameter>\n"
     "<parameter=days>3</parameter>\n</function>\n</seed:tool_call>"},
    {"gemma4", "<|tool_call>call:get_weather{city:<|\"|>Rome<|\"|>,days:3}<tool_call|>"},
    {"lfm2", "<|tool_call_start|>[get_weather(city=\"Rome\", days=3)]<|tool_call_end|>"},
    {"olmo3", "<function_calls>\nget_weather(city=\"Rome\", days=3)\n</function_calls>"},
    {"pythonic", "[get_weather(city=\"Rome\", days=3)]"},
    {"gpt-oss",
     "<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>"
     "{\"city\": \"Rome\", \"days\": 3}"},
};

// The call after content, where a format with calls that need no marker does need one.
std::string marked_call(std::string_view format) {
  const std::string& call = kCalls.at(std::string(format));
  if (format == "llama3") return "<|python_tag|>" + call;
  if (format == "pythonic") return "<|python_start|>" + call + "<|python_end|>";
  return call;
}

TEST(ToolCalls, EveryFormatReadsItsCallWhateverThePieces) {
  ASSERT_EQ(kCalls.size(), tool_call_formats().size());
  const Json expected = Json::parse(R"({"city":"Rome","days":3})");
  for (const auto& [format, text] : kCalls) {
    for (size_t bytes : {size_t{1}, size_t{2}, size_t{5}, size_t{13}, text.size()}) {
      Read got = read(with_tools(format), text, bytes);
      ASSERT_EQ(got.calls.size(), 1u) << format;
      EXPECT_EQ(got.calls[0].name, "get_weather") << format;
      EXPECT_EQ(got.arguments(0), expected) << format << got.calls[0].arguments;
      EXPECT_EQ(got.content, "") << format;
      EXPECT_GE(got.pieces, bytes == 1 ? 2u : 1u) << format;
    }
  }
}

TEST(ToolCalls, ContentBeforeAndSecondCallsAreKept) {
  for (const auto& [format, unmarked] : kCalls) {
    if (format == "gpt-oss" || format == "llama3") continue;
    const std::string text = marked_call(format);
    for (size_t bytes : {size_t{1}, size_t{7}, size_t{1000}}) {
      Read got = read(with_tools(format), "I <look> it up.\n\n" + text + "\n" + text + "\n", bytes);
      EXPECT_EQ(got.content, "I <look> it up.") << format;
      ASSERT_EQ(got.calls.size(), 2u) << format;
      EXPECT_EQ(got.arguments(1)["days"], 3) << format;
    }
  }
  const std::string& llama = kCalls.at("llama3");
  EXPECT_EQ(read(with_tools("llama3"), llama + "; " + llama, 1).calls.size(), 2u);
  EXPECT_EQ(read(with_tools("llama3"), "<|python_tag|>" + llama, 1).calls.size(), 1u);
}

TEST(ToolCalls, TextWithoutACallStaysAsItIs) {
  for (const ToolCallFormat& format : tool_call_formats()) {
    if (format.style == ToolCallFormat::Style::kHarmony) continue;
    for (std::string text : {"Hello", " a <b> {c} \n", "{\"a\": [1, 2]}", "< <t <tool <|tool [TOOL",
                             "{\"name\": 7}", ""}) {
      for (size_t bytes : {size_t{1}, size_t{3}, size_t{100}}) {
        Read got = read(with_tools(std::string(format.name)), text, bytes);
        EXPECT_EQ(got.content, text) << format.name;
        EXPECT_TRUE(got.calls.empty());
      }
    }
  }
  Read broken = read(with_tools("qwen"), "<tool_call>\nnot JSON at all\n</tool_call> so", 4);
  EXPECT_TRUE(broken.calls.empty());
  EXPECT_NE(broken.content.find("not JSON at all"), std::string::npos) << broken.content;
}

TEST(ToolCalls, ArgumentsMayBeMissingNestedAndCutShort) {
  EXPECT_EQ(read(with_tools("glm45"), "<tool_call>now</tool_call>", 1).arguments(0),
            Json::object());
  EXPECT_EQ(read(with_tools("qwen"), R"(<tool_call>{"name":"now"}</tool_call>)", 1).arguments(0),
            Json::object());
  std::string reversed = R"(<tool_call>{"arguments":{"days":1},"name":"now"}</tool_call>)";
  EXPECT_EQ(read(with_tools("qwen"), reversed, 1).arguments(0)["days"], 1);
  std::string nested = R"({"a":{"b":["}","\"]"]},"c":"</tool_call>"})";
  std::string call = R"(<tool_call>{"name":"now","arguments":)" + nested + "}</tool_call>";
  EXPECT_EQ(read(with_tools("qwen"), call, 3).arguments(0), Json::parse(nested));
  Read cut = read(with_tools("qwen"), call.substr(0, 50), 3);
  ASSERT_EQ(cut.calls.size(), 1u);
  EXPECT_TRUE(nested.starts_with(cut.calls[0].arguments)) << cut.calls[0].arguments;
  EXPECT_EQ(cut.content, "");
  Read kimi = read(with_tools("kimi_k2"), kCalls.at("kimi_k2"), 4);
  EXPECT_EQ(kimi.calls[0].id, "functions.get_weather:0");
}

TEST(ToolCalls, TaggedValuesHaveTheTypesOfTheSchema) {
  std::string call =
      "<tool_call>get_weather<arg_key>city</arg_key><arg_value>7</arg_value>"
      "<arg_key>days</arg_key><arg_value>7</arg_value>"
      "<arg_key>other</arg_key><arg_value>{\"x\": [true]}</arg_value>"
      "<arg_key>text</arg_key><arg_value>line\n\"two\"</arg_value></tool_call>";
  Json got = read(with_tools("ling3"), call, 1).arguments(0);
  EXPECT_EQ(got,
            Json::parse(R"({"city":"7","days":7,"other":{"x":[true]},"text":"line\n\"two\""})"));
  std::string code =
      "<tool_call>\n<function=get_weather>\n<parameter=city>\nif a:\n  b\n\n</parameter>\n"
      "</function>\n</tool_call>";
  EXPECT_EQ(read(with_tools("qwen3_coder"), code, 5).arguments(0)["city"], "if a:\n  b\n");
}

TEST(ToolCalls, EveryFormatsGrammarForcesCallsItReads) {
  for (const ToolCallFormat& format : tool_call_formats()) {
    std::string call = kCalls.at(std::string(format.name));
    if (format.name == "llama3") call = marked_call(format.name);
    auto required = tool_call_grammar(format, tools(), {.required = true});
    ASSERT_TRUE(required) << format.name;
    Grammar grammar = grammar_of(*required);
    EXPECT_TRUE(grammar.matches(call)) << format.name << call;
    EXPECT_FALSE(grammar.matches_prefix("Hi")) << format.name;
    auto replaced = [&](std::string_view from, std::string_view to) {
      std::string text = call;
      return text.replace(text.find(from), from.size(), to);
    };
    EXPECT_FALSE(grammar.matches(replaced("get_weather", "get_whether"))) << format.name;
    EXPECT_FALSE(grammar.matches(replaced("3", "x"))) << format.name;
    EXPECT_FALSE(grammar.matches(replaced("days", "nights"))) << format.name;
    bool many = format.section_begin.empty() && !format.end.empty();
    EXPECT_EQ(grammar.matches(call + "\n" + call), many) << format.name;
    auto one = tool_call_grammar(format, tools(), {.required = true, .parallel = false});
    EXPECT_FALSE(grammar_of(*one).matches(call + "\n" + call)) << format.name;
  }
}

TEST(ToolCalls, AValueMayBeMarkedAsAString) {
  auto call = [](const std::string& parameters) {
    return "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"f\">\n" + parameters +
           "</｜DSML｜invoke>\n</｜DSML｜function_calls>";
  };
  auto parameter = [](const std::string& rest) {
    return "<｜DSML｜parameter name=\"" + rest + "</｜DSML｜parameter>\n";
  };
  std::string text = call(parameter(R"(a" string="true">7)") + parameter(R"(b" string="false">7)") +
                          parameter("c\" string=\"true\"> line\n") +
                          parameter(R"(d" string="false">["x"])") + parameter(R"(e">true)"));
  for (size_t bytes : {size_t{1}, size_t{4}, text.size()}) {
    EXPECT_EQ(read(with_tools("deepseek_v32"), text, bytes).arguments(0),
              Json::parse(R"({"a":"7","b":7,"c":" line\n","d":["x"],"e":true})"));
  }
  const Tool tool{"f", Json::parse(R"({"type":"object","properties":{"a":{"type":"string"},
      "b":{"type":"integer"},"c":{},"d":{"enum":["x",1]}}})"),
                  true};
  const ToolCallFormat& format = **find_tool_call_format("deepseekv32", {});
  Grammar grammar =
      grammar_of(tool_call_grammar(format, std::vector{tool}, {.required = true}).value());
  for (const char* good :
       {R"(a" string="true">7)", R"(b" string="false">7)", R"(c" string="true">x)",
        R"(c" string="false">[1])", R"(d" string="true">x)", R"(d" string="false">1)"}) {
    EXPECT_TRUE(grammar.matches(call(parameter(good)))) << good;
  }
  for (const char* bad : {R"(a" string="false">7)", R"(b" string="true">7)", R"(b">7)",
                          R"(c" string="false">x)", R"(d" string="true">1)"}) {
    EXPECT_FALSE(grammar.matches(call(parameter(bad)))) << bad;
  }
}

// MiniMax-M3's tags, without the mark that stands before each.
std::string in_namespace(std::string_view text) {
  std::string all;
  for (char c : text) all += c == '<' ? "]<]minimax[>[<" : std::string(1, c);
  return all;
}

std::string nested_call(std::string_view arguments) {
  return in_namespace("<tool_call>\n<invoke name=\"f\">" + std::string(arguments) +
                      "</invoke>\n</tool_call>");
}

const Tool kNested = {"f", Json::parse(R"({"type":"object","properties":{
    "name":{"type":"string"},"n":{"type":"integer"},"list":{"type":"array","items":{"$ref":
    "#/$defs/point"}},"inner":{"type":"object","properties":{"on":{"type":"boolean"},"s":{"type":
    "string"},"tags":{"type":"array","items":{"type":"string"}}},"required":["on"]},
    "any":{},"maybe":{"anyOf":[{"type":"string"},{"type":"null"}]},"open":{"type":"object"}},
    "$defs":{"point":{"type":"object","properties":{"x":{"type":"number"}}}}})")};

TEST(ToolCalls, NestedTagsBecomeObjectsAndLists) {
  struct Case {
    std::string arguments, json;
  };
  const std::vector<Case> cases = {
      {"<name>7</name><n>7</n>", R"({"name":"7","n":7})"},
      {"\n<name> a\n b </name> \n<n> 7 </n>\n", R"({"name":" a\n b ","n":7})"},
      {"<list><item><x>1.5</x></item><item><x>2</x><y>z</y></item></list>",
       R"({"list":[{"x":1.5},{"x":2,"y":"z"}]})"},
      {"<list></list><inner></inner><name></name>", R"({"list":[],"inner":{},"name":""})"},
      {"<inner><on>true</on><s>3</s><tags><item>4</item></tags></inner>",
       R"({"inner":{"on":true,"s":"3","tags":["4"]}})"},
      {"<any><item>1</item><item>b</item></any>", R"({"any":[1,"b"]})"},
      {"<any><a>1</a><item>2</item><a>3</a><a>4</a></any>", R"({"any":{"a":[1,3,4],"item":2}})"},
      {"<any>[1, {}]</any><maybe>8</maybe>", R"({"any":[1,{}],"maybe":"8"})"},
      {"<maybe>null</maybe><open><any><any>1</any></any></open>",
       R"({"maybe":null,"open":{"any":{"any":1}}})"},
      {"<n>1", R"({"n":1})"},
      {"</n><n>1</n>", R"({"n":1})"},
      {"<inner><on>true</inner>", R"({"inner":{"on":true}})"}};
  for (const Case& c : cases) {
    std::string text = nested_call(c.arguments);
    MessageParserOptions options = with_tools("minimax_m3");
    options.tools = {kNested};
    for (size_t bytes = 1; bytes <= text.size(); bytes += bytes < 20 ? 1 : 37) {
      Read got = read(options, text, bytes);
      ASSERT_EQ(got.calls.size(), 1u) << text;
      EXPECT_EQ(got.arguments(0), Json::parse(c.json)) << text << got.calls[0].arguments;
      EXPECT_EQ(got.content, "");
    }
  }
}

TEST(ToolCalls, GrammarsOfNestedTagsBindEveryType) {
  auto grammar = [](const Tool& tool) {
    return grammar_of(tool_call_grammar(**find_tool_call_format("minimax-m3", {}),
                                        std::vector{tool}, {.required = true})
                          .value());
  };
  Grammar nested = grammar(kNested);
  for (const char* good :
       {"", "<name>it's b\n</name><n>7</n>", "<list></list>",
        "<list><item><x>1</x></item><item></item></list>",
        "<inner><on>true</on><s>a</s><tags><item>b</item></tags></inner>",
        "<any><a>1</a></any><maybe>x</maybe><open><b>c</b></open>", "<any>plain</any>"}) {
    EXPECT_TRUE(nested.matches(nested_call(good))) << good;
  }
  for (const char* bad : {"<n>x</n>", "<n>7</m>", "<name><b>x</b></name>", "<other>1</other>",
                          "<list><x>1</x></list>", "<inner></inner>",
                          "<inner><on>maybe</on></inner>", "<inner><s>a</s></inner>"}) {
    EXPECT_FALSE(nested.matches(nested_call(bad))) << bad;
  }
  for (const char* rule :
       {R"({"type":"string","pattern":"^b+$"})", R"({"type":"array","items":{},"minItems":1})",
        R"({"type":"object","properties":{"b":{"anyOf":[]}}})"}) {
    Tool ruled{"f", {{"type", "object"}, {"properties", {{"a", Json::parse(rule)}}}}, true};
    EXPECT_FALSE(tool_call_grammar(**find_tool_call_format("minimax-m3", {}), std::vector{ruled},
                                   {.required = true}))
        << rule;
  }
}

TEST(ToolCalls, LineBreaksMaySeparateTheCallsOfASection) {
  for (const ToolCallFormat& format : tool_call_formats()) {
    if (format.section_begin.empty() || format.is_list()) continue;
    const std::string& call = kCalls.at(std::string(format.name));
    size_t begin = call.find(format.begin), end = call.find(format.end) + format.end.size();
    std::string twice = call;
    twice.insert(end, "\n" + call.substr(begin, end - begin));
    Grammar grammar = grammar_of(tool_call_grammar(format, tools(), {.required = true}).value());
    EXPECT_TRUE(grammar.matches(twice)) << twice;
    Read got = read(with_tools(std::string(format.name)), twice, 3);
    EXPECT_EQ(got.calls.size(), 2u) << twice;
    auto one = tool_call_grammar(format, tools(), {.required = true, .parallel = false});
    EXPECT_FALSE(grammar_of(*one).matches(twice)) << twice;
  }
}

TEST(ToolCalls, StrictToolsBindOnlyAfterTheMark) {
  for (const ToolCallFormat& format : tool_call_formats()) {
    if (format.style == ToolCallFormat::Style::kHarmony) continue;
    std::string call = marked_call(format.name);
    Grammar grammar = grammar_of(tool_call_grammar(format, tools(true), {}).value());
    EXPECT_TRUE(grammar.matches("Just text.")) << format.name;
    EXPECT_TRUE(grammar.matches("I look. " + call)) << format.name;
    std::string wrong = call;
    wrong.replace(wrong.find("3"), 1, "x");
    EXPECT_FALSE(grammar.matches(wrong)) << format.name;
  }
  Tool patterned{"f", Json::parse(R"({"type":"object","properties":{"a":{"type":"string",
      "pattern":"^b+$"}}})"),
                 true};
  auto refused = tool_call_grammar(*find_tool_call_format("glm", {}).value(),
                                   std::vector{patterned}, {.required = true});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("f/properties/a: pattern"), std::string::npos);
}

TEST(ToolCalls, FormatsAreFoundByNameAndByTemplate) {
  EXPECT_EQ((*find_tool_call_format("hermes", {}))->name, "qwen");
  EXPECT_EQ((*find_tool_call_format("llama4_pythonic", {}))->name, "pythonic");
  EXPECT_EQ(*find_tool_call_format("none", "<tool_call></tool_call>"), nullptr);
  EXPECT_EQ(*find_tool_call_format("auto", "{{ messages }}"), nullptr);
  auto wrong = find_tool_call_format("nothing", {});
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().message.find("kimi_k2"), std::string::npos);
  EXPECT_FALSE(find_tool_call_format("", {}));
  EXPECT_FALSE(find_reasoning_format("", {}));
  REQUIRE_SHARED("data/chat-templates");
  const std::map<std::string, std::pair<std::string, std::string>> expected = {
      {"Qwen-Qwen2.5-7B-Instruct", {"qwen", ""}},
      {"Qwen-Qwen3-0.6B", {"qwen", "qwen3"}},
      {"Qwen3-Coder", {"qwen3_coder", ""}},
      {"meta-llama-Llama-3.1-8B-Instruct", {"llama3", ""}},
      {"meta-llama-Llama-3.2-3B-Instruct", {"llama3", ""}},
      {"deepseek-ai-DeepSeek-V3.1", {"deepseekv31", "qwen3"}},
      {"llama-cpp-deepseek-r1", {"deepseekv3", "qwen3"}},
      {"deepseek-ai-DeepSeek-V3.2", {"deepseekv32", "qwen3"}},
      {"GLM-4.6", {"glm45", "qwen3"}},
      {"GLM-4.7-Flash", {"glm45", "qwen3"}},
      {"Kimi-K2-Instruct", {"kimi_k2", ""}},
      {"Kimi-K2-Thinking", {"kimi_k2", "qwen3"}},
      {"MiniMax-M2", {"minimax-m2", "qwen3"}},
      {"MiniMax-M3", {"minimax-m3", "minimax-m3"}},
      {"openai-gpt-oss-120b", {"gpt-oss", "gpt-oss"}},
      {"mistralai-Mistral-Nemo-Instruct-2407", {"mistral_list", ""}},
      {"Mistral-Small-3.2-24B-Instruct-2506", {"mistral", ""}},
      {"mistralai-Ministral-3-14B-Reasoning-2512", {"mistral", "mistral"}},
      {"Qwen3.5-4B", {"qwen3_coder", "qwen3"}},
      {"MiniMax-M1", {"", ""}},
      {"google-gemma-2-2b-it", {"", ""}},
      {"microsoft-Phi-3.5-mini-instruct", {"", ""}}};
  for (const auto& [file, names] : expected) {
    std::string source =
        read_file(test::shared_path("data/chat-templates/" + file + ".jinja")).value();
    ChatSyntax syntax = find_chat_syntax("auto", "auto", source).value();
    EXPECT_EQ(syntax.tool_calls == nullptr ? "" : syntax.tool_calls->name, names.first) << file;
    EXPECT_EQ(syntax.reasoning == nullptr ? "" : syntax.reasoning->name, names.second) << file;
  }
}

// What tells the templates of families apart that publish none here.
TEST(ToolCalls, NewerTemplatesAreToldApart) {
  const std::vector<std::array<std::string, 3>> cases = {
      {"lfm2", "", R"({{- "<|im_start|>system\n" }}List of tools: <|tool_list_start|>[)"},
      {"lfm2", "qwen3", R"(<|im_start|>List of tools: <think>{{ thinking }}</think>)"},
      {"gemma4", "gemma4", R"('<|tool_call>call:' }<tool_call|> <|channel>thought\n<channel|>)"},
      {"seed_oss", "seed_oss",
       "<seed:think></seed:think><seed:tool_call>\n<function=a></function></seed:tool_call>"},
      {"hunyuan_a13b", "hunyuan_a13b",
       R"(<tool_calls>[{"name"}]</tool_calls> <|extra_0|> <think>\n\n</think>)"},
      {"qwen", "ernie45",
       R"(<global_setting>\nthink_mode=True <tool_call></tool_call> <think>\n</think><response>)"},
      {"granite", "granite3.3",
       "<|start_of_role|> <|tool_call|> <think></think> <response></response>"},
      {"granite", "granite",
       "<|start_of_role|><|tool_call|> Here is my thought process: Here is my response:"},
      {"qwen", "", "<|start_of_role|> <tool_call>\n</tool_call>"},
      {"olmo3", "", "<function_calls>\nf()\n</function_calls>"},
      {"longcat", "", "<longcat_tool_call>{\"name\": }</longcat_tool_call>"},
      {"longcat_xml", "longcat",
       "<longcat_tool_call>{name}\n<longcat_arg_key></longcat_tool_call> "
       "<longcat_think></longcat_think>"},
      {"pythonic", "", "[func_name1(a=b)] <|eot|>"},
      {"llama3", "", R"({"name": "", "parameters": {}} <|eot|>)"}};
  for (const auto& [calls, reasoning, source] : cases) {
    ChatSyntax syntax = find_chat_syntax("auto", "auto", source).value();
    EXPECT_EQ(syntax.tool_calls == nullptr ? "" : syntax.tool_calls->name, calls) << source;
    EXPECT_EQ(syntax.reasoning == nullptr ? "" : syntax.reasoning->name, reasoning) << source;
  }
}

TEST(ToolCalls, AListHoldsSeveralCalls) {
  const std::map<std::string, std::string> lists = {
      {"lfm2", "<|tool_call_start|>[now(), get_weather(days=2, city='a, b]')]<|tool_call_end|>"},
      {"lfm2 ", R"(<|tool_call_start|>[{"name": "now", "arguments": {}}, {"name": "get_weather",
          "arguments": {"days": 2, "city": "a, b]"}, "id": "x}"}]<|tool_call_end|>)"},
      {"pythonic", "[ now( ),get_weather( days = 2 , city = \"a, b]\" , ) ]"},
      {"olmo3", "<function_calls>\nnow()\nget_weather(days=2, city='a, b]')\n</function_calls>"},
      {"granite", R"(<tool_call> [{"name":"now","arguments":{}},
          {"arguments":{"days":2,"city":"a, b]"},"name":"get_weather"}])"},
      {"mistral_list", R"([TOOL_CALLS] [{"name": "now", "arguments": {}, "id": "123456789"},
          {"name": "get_weather", "arguments": {"days": 2, "city": "a, b]"}
}])"}};
  const Json expected = {{"days", 2}, {"city", "a, b]"}};
  for (const auto& [format, text] : lists) {
    for (size_t bytes = 1; bytes <= text.size(); bytes += bytes < 16 ? 1 : 23) {
      Read got = read(with_tools(std::string(trim_space(format))), text + "\nDone.", bytes);
      ASSERT_EQ(got.calls.size(), 2u) << format << bytes;
      EXPECT_EQ(got.calls[0].name, "now");
      EXPECT_EQ(got.arguments(0), Json::object());
      EXPECT_EQ(got.calls[1].name, "get_weather");
      EXPECT_EQ(got.arguments(1), expected) << format << got.calls[1].arguments;
      EXPECT_EQ(got.content, "\nDone.") << format;
    }
  }
}

TEST(ToolCalls, TextThatOnlyLooksLikeAListStays) {
  for (std::string text : {"[1] says so", "[get_weather](x)", "[other(a=1)]", "[", "[get_weather",
                           "[now() ", " [get_weather (a)]", "[]"}) {
    bool call = text == "[now() ";
    for (size_t bytes : {size_t{1}, size_t{4}, size_t{100}}) {
      Read got = read(with_tools("pythonic"), text, bytes);
      EXPECT_EQ(got.calls.size(), call ? 1u : 0u) << text;
      EXPECT_EQ(got.content, call ? "" : text);
      std::string marked = "<|tool_call_start|>" + text + "<|tool_call_end|>";
      if (call || text.find('(') != text.npos) continue;
      EXPECT_EQ(read(with_tools("lfm2"), marked, bytes).content, "<|tool_call_start|>" + text);
    }
  }
}

TEST(ToolCalls, LiteralsBecomeJson) {
  struct Case {
    std::string format, arguments, json;
  };
  const std::vector<Case> cases = {
      {"lfm2", R"(a='it\'s "so"\n', b="\u00e9\x41\U0001F600\q")",
       R"({"a":"it's \"so\"\n","b":"éA😀\\q"})"},
      {"lfm2", "a=True, b=False, c=None, d=-1.5e3, e=007, f=.5, g=true, h=null, i=word",
       R"({"a":true,"b":false,"c":null,"d":-1500.0,"e":7,"f":0.5,"g":true,"h":null,"i":"word"})"},
      {"lfm2", R"(a=[1, 'x', [], (2, 3)], b={'k': {"l": [True]}, 'm': None}, c={}, d=())",
       R"({"a":[1,"x",[],[2,3]],"b":{"k":{"l":[true]},"m":null},"c":{},"d":[]})"},
      {"lfm2", "a='line\nbreak\ttab', b=''", R"({"a":"line\nbreak\ttab","b":""})"},
      {"lfm2", "a='<|tool_call_end|>', b=']'", R"({"a":"<|tool_call_end|>","b":"]"})"},
      {"gemma4", R"(a:<|"|>it's "so", {x}\n<|"|>,b:[1,<|"|>y<|"|>],c:{k:true,l:{m:null}})",
       R"({"a":"it's \"so\", {x}\\n","b":[1,"y"],"c":{"k":true,"l":{"m":null}}})"},
      {"gemma4", R"(a:bare words,<|"|>b<|"|>: -2 )", R"({"a":"bare words","b":-2})"},
      {"gemma4", R"(a:<|"|><|x<|"|>)", R"({"a":"<|x"})"}};
  for (const Case& c : cases) {
    bool gemma = c.format == "gemma4";
    std::string text = gemma ? "<|tool_call>call:now{" + c.arguments + "}<tool_call|>"
                             : "<|tool_call_start|>[now(" + c.arguments + ")]<|tool_call_end|>";
    for (size_t bytes = 1; bytes <= text.size(); bytes += bytes < 12 ? 1 : 31) {
      Read got = read(with_tools(c.format), text, bytes);
      ASSERT_EQ(got.calls.size(), 1u) << text;
      EXPECT_EQ(got.arguments(0), Json::parse(c.json)) << text << got.calls[0].arguments;
      EXPECT_EQ(got.content, "");
    }
  }
}

TEST(ToolCalls, BrokenLiteralsAreStillJson) {
  const std::string texts[] = {
      "3, a=1",       "a=, b=1",  "'x', a=[1, b=2]", "a='x' 'y', b=(1]",
      "a==1, =2, ,,", "a=\\x, b", "{'a'}, b={1, 2}", "a=\"\\x4\", b=\"\\u12\""};
  for (const std::string& arguments : texts) {
    std::string text = "<|tool_call_start|>[now(" + arguments + ")))]}]<|tool_call_end|>";
    Read whole = read(with_tools("lfm2"), text, text.size());
    ASSERT_EQ(whole.calls.size(), 1u) << text;
    EXPECT_TRUE(whole.arguments(0).is_object()) << whole.calls[0].arguments;
    for (size_t bytes = 1; bytes < text.size(); ++bytes) {
      Read got = read(with_tools("lfm2"), text, bytes);
      EXPECT_EQ(got.calls[0].arguments, whole.calls[0].arguments) << text;
    }
  }
}

TEST(ToolCalls, LiteralGrammarsBindEveryType) {
  const Tool tool{"f", Json::parse(R"({"type":"object","properties":{
      "on":{"type":"boolean"},"name":{"type":"string"},"list":{"type":"array","items":{"type":
      "integer"}},"inner":{"type":"object","properties":{"k":{"enum":["a","b"]}},"required":["k"]},
      "any":{}},"required":["name"]})"),
                  true};
  auto grammar = [&](const char* format) {
    return grammar_of(tool_call_grammar(*find_tool_call_format(format, {}).value(),
                                        std::vector{tool}, {.required = true})
                          .value());
  };
  Grammar python = grammar("pythonic");
  for (const char* text : {R"([f(name="x")])", R"([f(on=True, name="x",inner={"k": "a"}, any=1)])",
                           R"([f(name="a]\"b", list=[1, 2]), f(name="")])"}) {
    EXPECT_TRUE(python.matches(text)) << text;
  }
  for (const char* text : {"[f()]", R"([f(name=3)])", R"([f(name="x", on=true)])",
                           R"([f(name="x", inner={"k": "c"})])", R"([f(name="x",)])"}) {
    EXPECT_FALSE(python.matches(text)) << text;
  }
  Grammar gemma = grammar("gemma4");
  auto call = [](std::string arguments) {
    return "<|tool_call>call:f{" + arguments + "}<tool_call|>";
  };
  const std::string name = R"(name:<|"|>it's {x}<|"|>)";
  EXPECT_TRUE(gemma.matches(call(name)));
  EXPECT_TRUE(gemma.matches(call("on:true," + name +
                                 R"(,list:[1,2],inner:{k:<|"|>b<|"|>},)"
                                 R"(any:{a:<|"|>}<|"|>,b:[1]})")));
  EXPECT_TRUE(gemma.matches(call(name + ",list:[]")));
  EXPECT_FALSE(gemma.matches(call("")));
  EXPECT_FALSE(gemma.matches(call("name:x")));
  EXPECT_FALSE(gemma.matches(call(name + R"(,list:[<|"|>1<|"|>])")));
  EXPECT_FALSE(gemma.matches(call(name + R"(,inner:{k:<|"|>c<|"|>})")));
  EXPECT_FALSE(gemma.matches(call("on:1," + name)));
  for (const char* rule :
       {R"({"type":"string","pattern":"^b+$"})", R"({"type":"array","items":{},"minItems":1})",
        R"({"anyOf":[{"type":"string"}]})"}) {
    Tool ruled{"f", {{"type", "object"}, {"properties", {{"a", Json::parse(rule)}}}}, true};
    const ToolCallFormat& format = **find_tool_call_format("gemma4", {});
    EXPECT_FALSE(tool_call_grammar(format, std::vector{ruled}, {.required = true})) << rule;
    EXPECT_TRUE(tool_call_grammar(**find_tool_call_format("lfm2", {}), std::vector{ruled},
                                  {.required = true}));
  }
}

TEST(ToolCalls, ToolsThatAreNotStrictTakeAnyLiterals) {
  for (const char* format : {"lfm2", "gemma4"}) {
    std::vector<Tool> both = tools(true);
    both[0].strict = false;
    Grammar grammar =
        grammar_of(tool_call_grammar(**find_tool_call_format(format, {}), both, {}).value());
    std::string call = kCalls.at(format);
    call.replace(call.find("3"), 1, "[true,{}]");
    EXPECT_TRUE(grammar.matches("So. " + call)) << call;
    EXPECT_FALSE(grammar.matches(call.substr(0, call.size() - 3))) << call;
  }
}

TEST(StructuralFormat, HoldsEveryKindOfSource) {
  using Kind = GrammarSource::Kind;
  auto matches = [](Kind kind, std::string text, const std::string& what) {
    auto format = structural_format({.kind = kind, .text = std::move(text)});
    EXPECT_TRUE(format);
    return grammar_of(*format).matches(what);
  };
  EXPECT_TRUE(matches(Kind::kRegex, "a+", "aa"));
  EXPECT_TRUE(matches(Kind::kEbnf, "root ::= \"x\"", "x"));
  EXPECT_TRUE(matches(Kind::kJsonObject, "", "{\"a\":1}"));
  EXPECT_TRUE(matches(Kind::kJsonSchema, R"({"const":1})", "1"));
  EXPECT_TRUE(matches(Kind::kChoices, R"(["p","q"])", "q"));
  EXPECT_TRUE(matches(Kind::kStructuralTag,
                      R"({"structures":[{"begin":"<f>","schema":{"const":1},"end":"</f>"}],
                          "triggers":["<f"]})",
                      "so <f>1</f>"));
  EXPECT_FALSE(structural_format({.kind = Kind::kJsonSchema, .text = "{"}));
  EXPECT_FALSE(structural_format({.kind = Kind::kChoices, .text = "[1]"}));
}

}  // namespace
}  // namespace banyan::tool_calls_test
