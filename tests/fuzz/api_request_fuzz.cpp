// Any bytes as the body of an endpoint's request: a plan within the limits, or an error that is
// the client's. The first byte chooses the endpoint.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/check.h"
#include "llm/llm_parts.h"
#include "server/anthropic/endpoints.h"
#include "server/llamacpp/endpoints.h"
#include "server/ollama/endpoints.h"
#include "server/openai/endpoints.h"
#include "server/openai/responses/endpoints.h"
#include "server/sglang/endpoints.h"

namespace {

constexpr std::string_view kConfig =
    R"({"architectures":["LlamaForCausalLM"],"vocab_size":32,"hidden_size":8,)"
    R"("intermediate_size":8,"num_hidden_layers":1,"num_attention_heads":1,)"
    R"("num_key_value_heads":1,"max_position_embeddings":64})";
constexpr std::string_view kTokenizer =
    R"({"model":{"type":"BPE","merges":[],"vocab":{"a":0,"b":1,"c":2,"{":3}},)"
    R"("added_tokens":[{"id":4,"content":"</s>","special":true,"normalized":false}]})";
constexpr std::string_view kTokenizerConfig =
    R"({"chat_template":"{% for m in messages %}{{ m.role }}{{ m.content }}{% endfor %}"})";

std::unique_ptr<banyan::Llm> load() {
  std::string folder = std::filesystem::temp_directory_path() / "banyan-fuzz-XXXXXX";
  CHECK(mkdtemp(folder.data()) != nullptr);
  auto write = [&](const char* name, std::string_view text) {
    std::ofstream(folder + "/" + name) << text;
  };
  write("config.json", kConfig);
  write("tokenizer.json", kTokenizer);
  write("tokenizer_config.json", kTokenizerConfig);
  auto llm = banyan::Llm::load({.model_path = folder, .load_format = "dummy", .threads = 1});
  std::filesystem::remove_all(folder);
  CHECK(llm, "{}", llm.error().message);
  return std::move(*llm);
}

void check_plan(const banyan::Llm& llm, const banyan::Parsed<banyan::GenerationPlan>& plan,
                bool may_be_empty = false) {
  if (!plan) {
    CHECK(!plan.error().error.message.empty());
    return;
  }
  CHECK((may_be_empty || !plan->requests.empty()) && plan->requests.size() == plan->choices.size());
  CHECK(std::ssize(plan->requests) <= llm.config().queued_max);
  for (const banyan::GenerateRequest& request : plan->requests) {
    CHECK(request.sampling.validate());
    CHECK(std::ssize(request.prompt) + request.options.max_new_tokens <=
          llm.info().context_length_tokens);
  }
  CHECK(plan->answer != nullptr);
  for (const auto& [source, field] : plan->missing) (void)compile_grammar(llm, source);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto llm = load();
  if (size == 0) return 0;
  const std::string body(reinterpret_cast<const char*>(data) + 1, size - 1);
  auto json = banyan::parse_body(body);
  if (!json) return 0;
  const banyan::RequestContext context = {*llm, "model", false, "id", 0, {}};
  switch (data[0] % 16) {
    case 0:
      check_plan(*llm, banyan::plan_completion(context, *json));
      break;
    case 1:
      check_plan(*llm, banyan::plan_chat(context, *json));
      break;
    case 2:
      check_plan(*llm, banyan::plan_generate(context, *json));
      break;
    case 3:
      check_plan(*llm, banyan::plan_score(context, *json));
      break;
    case 4:
      (void)banyan::tokenize(context, *json);
      break;
    case 5:
      (void)banyan::detokenize(context, *json);
      break;
    case 6:
      check_plan(*llm, banyan::plan_message(context, *json));
      break;
    case 7:
      (void)banyan::count_message_tokens(context, *json);
      break;
    case 8:
      check_plan(*llm, banyan::plan_ollama_chat(context, *json), true);
      break;
    case 9:
      check_plan(*llm, banyan::plan_ollama_generate(context, *json), true);
      break;
    case 10:
      check_plan(*llm, banyan::plan_llama_completion(context, *json));
      break;
    case 11:
      check_plan(*llm, banyan::plan_response(context, *json));
      break;
    case 12:
      check_plan(*llm, banyan::plan_infill(context, *json));
      break;
    case 13:
      (void)banyan::apply_template(context, *json);
      break;
    case 14:
      (void)banyan::show_ollama_model(context, *json);
      break;
    default:
      break;
  }
  return 0;
}
