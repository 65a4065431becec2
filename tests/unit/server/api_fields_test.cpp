// Every field of every protocol with every kind of value: a plan or a client error, never an
// exception.
#include <gtest/gtest.h>

#include "server/anthropic/endpoints.h"
#include "server/llamacpp/endpoints.h"
#include "server/ollama/endpoints.h"
#include "server/openai/endpoints.h"
#include "server/openai/responses/endpoints.h"
#include "server/sglang/endpoints.h"
#include "support/api.h"

namespace banyan::api_fields_test {
namespace {

constexpr std::string_view kFields[] = {
    "messages", "prompt",      "input",      "system",        "instructions",
    "tools",    "tool_choice", "functions",  "function_call", "thinking",
    "think",    "options",     "format",     "output_config", "output_format",
    "text",     "reasoning",   "include",    "suffix",        "stop",
    "stream",   "n_predict",   "logit_bias", "keep_alive",    "previous_response_id",
    "metadata", "bad_words",   "max_tokens", "n_cmpl",        "allowed_token_ids",
    "best_of",  "model",       "store",      "cache_prompt",  "prompt_logprobs",
    "lora",     "lora_path"};
constexpr std::string_view kValues[] = {
    "7",
    "-1",
    "1e300",
    "true",
    "\"\"",
    "\"text\"",
    "[]",
    "[[]]",
    "[7]",
    "[null]",
    "[\"a\"]",
    "{}",
    R"([{}])",
    R"({"type":7})",
    R"({"type":"function"})",
    R"([{"type":"function"}])",
    R"({"type":"json_schema"})",
    R"({"type":"allowed_tools","tools":[7]})",
    R"([{"role":"user"}])",
    R"([{"role":"user","content":[7]}])",
    R"([{"role":"user","content":[{"type":"tool_result"}]}])",
    R"([{"role":"assistant","content":[{"type":"tool_use","input":{}}]}])",
    R"([{"role":"assistant","content":"a","tool_calls":[7]}])",
    R"({"format":[]})",
    R"([{"type":"reasoning","content":[7]}])",
    R"([{"type":"function_call"}])"};

TEST(ApiFields, OfAnyKindEndInAPlanOrAnError) {
  auto llm = test::tiny_llm("{% for m in messages %}{{ m.role }}{{ m.content }}{% endfor %}",
                            {.ends = true, .vocabulary = 800});
  RequestContext context = test::context_for(*llm);
  const Json base = Json::parse(R"({"model":"tiny","max_tokens":2,"prompt":"a","input":"a",
      "messages":[{"role":"user","content":"a"}]})");
  int plans = 0, errors = 0;
  for (Planner planner : {plan_completion, plan_chat, plan_message, plan_ollama_chat,
                          plan_ollama_generate, plan_llama_completion, plan_response}) {
    for (std::string_view field : kFields) {
      for (std::string_view value : kValues) {
        Json body = base;
        body[std::string(field)] = Json::parse(value);
        Parsed<GenerationPlan> plan = planner(context, body);
        ++(plan ? plans : errors);
        if (plan) continue;
        EXPECT_FALSE(plan.error().error.message.empty()) << field << " " << value;
      }
    }
  }
  EXPECT_GT(plans, 1000);
  EXPECT_GT(errors, 1000);
}

TEST(ApiFields, ImagesAdaptersAndTheLikeAreRefusedByNameEverywhere) {
  auto llm = test::tiny_llm("{% for m in messages %}{{ m.role }}{{ m.content }}{% endfor %}",
                            {.ends = true, .vocabulary = 800});
  RequestContext context = test::context_for(*llm);
  const Json base = Json::parse(R"({"model":"tiny","max_tokens":2,"prompt":"a","input":"a",
      "messages":[{"role":"user","content":"a"}]})");
  Json native = {{"text", "a"}};
  const std::string names[] = {"image_data",
                               "images",
                               "multi_modal_data",
                               "multimodal_data",
                               "audio",
                               "lora_request",
                               "prompt_embeds",
                               "logits_processors",
                               "audio_data",
                               "input_embeds",
                               "custom_params",
                               "kv_transfer_params",
                               "return_hidden_states"};
  auto refused = [&](Planner planner, const Json& body, const std::string& name) {
    Parsed<GenerationPlan> plan = planner(context, body);
    ASSERT_FALSE(plan) << name;
    EXPECT_EQ(plan.error().error.message, name + " is not supported yet; leave it out");
    EXPECT_EQ(plan.error().param, name);
  };
  for (const std::string& name : names) {
    for (Planner planner : {plan_completion, plan_chat, plan_message, plan_ollama_chat,
                            plan_ollama_generate, plan_llama_completion, plan_response}) {
      Json body = base;
      if (planner == plan_response) body.erase("prompt");  // which is a stored prompt there
      body[name] = {{"id", 0}};
      refused(planner, body, name);
      body[name] = Json::array();
      EXPECT_TRUE(planner(context, body)) << name;
    }
    Json body = native;
    body[name] = {{"id", 0}};
    refused(plan_generate, body, name);
    body = native;
    body["sampling_params"] = {{name, {{"id", 0}}}};
    refused(plan_generate, body, "sampling_params." + name);
  }
  for (const char* name : {"lora", "lora_path"}) {  // which are fields of the request
    Json body = native;
    body["sampling_params"] = {{name, "poet"}};
    refused(plan_generate, body, "sampling_params." + std::string(name));
  }
}

TEST(ApiFields, AnImageNextToAMessagesTextIsRefused) {
  auto llm = test::tiny_llm("{{ messages[0].content }}", {.ends = true});
  for (const char* name : {"images", "image_data", "audio"}) {
    Json message = {{"role", "user"}, {"content", "a"}, {name, Json::array({"aGk="})}};
    Json body = {{"model", "tiny"}, {"max_tokens", 2}, {"messages", Json::array({message})}};
    for (Planner planner : {plan_chat, plan_ollama_chat}) {
      std::string answer = test::ask(*llm, planner, body.dump());
      std::string expected = std::string("error messages: messages[0].") + name;
      EXPECT_TRUE(answer.starts_with(expected + " is not supported")) << answer;
    }
  }
}

}  // namespace
}  // namespace banyan::api_fields_test
