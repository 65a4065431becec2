// Chat messages on their way to the template: forms that are accepted, and errors that name the
// place.
#include "llm/chat_prompt.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "support/shared.h"

namespace banyan::chat_prompt_test {
namespace {

constexpr const char* kTemplate =
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% for c in m.tool_calls or [] %}"
    "[{{ c.function.name }}:{{ c.function.arguments.city }}]{% endfor %};{% endfor %}"
    "{% if tools %}tools={{ tools | length }};{% endif %}{% if mood %}mood={{ mood }};{% endif %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}";

class ChatPromptTest : public testing::Test {
 protected:
  void SetUp() override { load(kTemplate); }

  void load(const std::string& chat_template) {
    folder_.write("config.json", R"({
      "architectures": ["LlamaForCausalLM"], "vocab_size": 300, "hidden_size": 32,
      "intermediate_size": 48, "num_hidden_layers": 1, "num_attention_heads": 4,
      "num_key_value_heads": 2, "max_position_embeddings": 64})");
    std::string tokenizer = test::source_path("tests/golden/tokenizer/tiny_byte_level/");
    folder_.write("tokenizer.json", read_file(tokenizer + "tokenizer.json", 1 << 20).value());
    Json config = {{"chat_template", chat_template}};
    folder_.write("tokenizer_config.json", config.dump());
    llm_ = Llm::load({.model_path = folder_.path(), .load_format = "dummy", .threads = 1}).value();
  }

  std::string render(const std::string& messages, ChatPrompt prompt = {}) {
    prompt.messages = Json::parse(messages);
    auto text = render_chat(*llm_, std::move(prompt));
    return text ? *text : "error: " + text.error().message;
  }

  test::TemporaryFolder folder_;
  std::unique_ptr<Llm> llm_;
};

TEST_F(ChatPromptTest, ContentIsAStringOrPartsOfText) {
  EXPECT_EQ(render(R"([{"role":"user","content":"Hi"}])"), "<user>Hi;<assistant>");
  EXPECT_EQ(render(R"([{"role":"user","content":[{"type":"text","text":"a"},
                                                 {"type":"text","text":"b"}]}])"),
            "<user>a\nb;<assistant>");
  EXPECT_EQ(render(R"([{"role":"user","content":"Hi"}])", {.add_generation_prompt = false}),
            "<user>Hi;");
}

TEST_F(ChatPromptTest, ToolsAndCallsReachTheTemplate) {
  ChatPrompt prompt{.tools = Json::parse(R"([{"type":"function"},{"type":"function"}])")};
  EXPECT_EQ(render(R"([{"role":"user","content":"?"},
      {"role":"assistant","content":null,"tool_calls":[
        {"function":{"name":"weather","arguments":"{\"city\":\"Rome\"}"}}]},
      {"role":"tool","tool_call_id":"1","content":"sunny"}])",
                   prompt),
            "<user>?;<assistant>[weather:Rome];<tool>sunny;tools=2;<assistant>");
}

TEST_F(ChatPromptTest, DeveloperIsTheSystemForATemplateThatDoesNotKnowIt) {
  EXPECT_EQ(render(R"([{"role":"developer","content":"Be brief"}])"),
            "<system>Be brief;<assistant>");
  load("{% for m in messages %}{% if m.role == 'developer' %}D{% endif %}{% endfor %}");
  EXPECT_EQ(render(R"([{"role":"developer","content":"Be brief"}])"), "D");
}

TEST_F(ChatPromptTest, ContinuesTheFinalMessage) {
  const char* messages = R"([{"role":"user","content":"Hi"},{"role":"assistant","content":"He"}])";
  EXPECT_EQ(render(messages, {.continue_final_message = true}), "<user>Hi;<assistant>He");
  // As vLLM's clients ask for it: the beginning of the answer is there all the same.
  EXPECT_EQ(render(messages, {.add_generation_prompt = false, .continue_final_message = true}),
            "<user>Hi;<assistant>He");
  EXPECT_NE(render(R"([{"role":"user","content":"Hi"}])", {.continue_final_message = true})
                .find("error: continue_final_message"),
            std::string::npos);
}

TEST_F(ChatPromptTest, VariablesMayNotReplaceWhatTheRequestSays) {
  const char* messages = R"([{"role":"user","content":"Hi"}])";
  EXPECT_EQ(render(messages, {.variables = {{"mood", "sad"}}}), "<user>Hi;mood=sad;<assistant>");
  for (const char* name : {"messages", "tools", "add_generation_prompt", "tokenize"}) {
    EXPECT_EQ(render(messages, {.variables = {{name, true}}}),
              std::string("error: chat_template_kwargs must not set ") + name);
  }
}

TEST_F(ChatPromptTest, RefusesWhatItCannotUseByItsPlace) {
  auto refused = [&](const std::string& messages, const std::string& part) {
    EXPECT_NE(render(messages).find(part), std::string::npos) << render(messages);
  };
  refused("[]", "at least one message");
  refused("{}", "at least one message");
  refused(R"([7])", "messages[0] is number");
  refused(R"([{"content":"Hi"}])", "messages[0].role");
  refused(R"([{"role":7,"content":"Hi"}])", "messages[0].role");
  refused(R"([{"role":"user"}])", "messages[0].content is missing");
  refused(R"([{"role":"user","content":7}])", "messages[0].content is number");
  refused(R"([{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}])",
          "messages[0].content[0]: a part of type \"image_url\"");
  refused(R"([{"role":"user","content":[{"type":7}]}])", "content[0]: a part of type that is no");
  refused(R"([{"role":"user","content":["x"]}])", "content[0]: not {\"type\"");
}

}  // namespace
}  // namespace banyan::chat_prompt_test
