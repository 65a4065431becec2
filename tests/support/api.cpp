#include "support/api.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "llm/llm_parts.h"
#include "support/shared.h"

namespace banyan::test {

EngineConfig tiny_text_model(const TemporaryFolder& folder, const std::string& chat_template,
                             const TinyLlm& options) {
  Json model = {{"architectures", {"LlamaForCausalLM"}},
                {"vocab_size", options.vocabulary},
                {"hidden_size", 32},
                {"intermediate_size", 48},
                {"num_hidden_layers", 1},
                {"num_attention_heads", 4},
                {"num_key_value_heads", 2},
                {"max_position_embeddings", options.context}};
  if (options.ends) model["eos_token_id"] = 2;
  folder.write("config.json", model.dump());
  std::string tokenizer = source_path("tests/golden/tokenizer/tiny_byte_level/tokenizer.json");
  if (options.tokenizer) folder.write("tokenizer.json", read_file(tokenizer, 1 << 20).value());
  Json config = Json::object();
  if (!chat_template.empty()) config["chat_template"] = chat_template;
  folder.write("tokenizer_config.json", config.dump());
  EngineConfig engine{.model_path = folder.path(),
                      .load_format = "dummy",
                      .threads = 1,
                      .measure_drafts = false};  // what is drafted must not depend on time
  engine.page_size_tokens = options.page_size;
  engine.queued_max = options.queued_max;
  engine.radix_cache = options.radix_cache;
  return engine;
}

std::unique_ptr<Llm> tiny_llm(const std::string& chat_template, const TinyLlm& options) {
  TemporaryFolder folder;
  return Llm::load(tiny_text_model(folder, chat_template, options)).value();
}

RequestContext context_for(const Llm& llm) {
  std::string source;
  if (tokenizer_of(llm) != nullptr) source = tokenizer_of(llm)->chat_template().value_or("");
  return {.llm = llm,
          .model_name = "tiny",
          .request_id = "0123",
          .created_s = 1700000000,
          .received = std::chrono::steady_clock::now(),
          .syntax = find_chat_syntax("auto", "auto", source).value()};
}

namespace {

std::string refused(const RequestError& error) {
  return "error " + error.param + ": " + error.error.message;
}

}  // namespace

std::string run_plan(Llm& llm, GenerationPlan& plan) {
  std::string stream;
  for (size_t i = 0; i < plan.requests.size(); ++i) {
    SequenceId id = 0;
    auto submitted = llm.engine().submit(plan.requests[i], [&, i](const TokenEvent& event) {
      Choice& choice = plan.choices[i];
      if (choice.stream.done()) return;
      TextDelta delta = choice.stream.take(event);
      plan.answer->take(choice, event, std::move(delta), stream);
      if (choice.stream.done()) llm.engine().cancel(id);
    });
    if (!submitted) return refused(submitted.error());
    id = *submitted;
    while (llm.engine().step()) {
    }
  }
  if (!plan.stream) return plan.answer->whole(plan.choices);
  plan.answer->end(plan.choices, stream);
  return stream;
}

std::string ask(Llm& llm, Planner planner, const std::string& body) {
  Parsed<Json> json = parse_body(body);
  if (!json) return refused(json.error());
  RequestContext context = context_for(llm);
  Parsed<GenerationPlan> plan = planner(context, *json);
  if (plan && !plan->missing.empty()) {
    CompiledGrammars compiled;
    for (const auto& [source, field] : plan->missing) {
      auto grammar = compile_grammar(llm, source);
      if (!grammar) return refused(RequestError(grammar.error(), field));
      compiled.emplace(source, *std::move(grammar));
    }
    context.compiled = std::make_shared<const CompiledGrammars>(std::move(compiled));
    plan = planner(context, *json);
  }
  if (!plan) return refused(plan.error());
  return run_plan(llm, *plan);
}

Json ask_json(Llm& llm, Planner planner, const std::string& body) {
  std::string answer = ask(llm, planner, body);
  Json json = Json::parse(answer, nullptr, false);
  EXPECT_FALSE(json.is_discarded()) << answer;
  return json;
}

std::vector<Json> events_of(const std::string& stream) {
  std::vector<Json> events;
  size_t at = 0;
  while (at < stream.size()) {
    size_t end = stream.find("\n\n", at);
    EXPECT_NE(end, std::string::npos) << stream;
    std::string line = stream.substr(at, end - at);
    EXPECT_EQ(line.substr(0, 6), "data: ");
    at = end + 2;
    if (line == "data: [DONE]") break;
    events.push_back(Json::parse(line.substr(6), nullptr, false));
    EXPECT_FALSE(events.back().is_discarded()) << line;
  }
  EXPECT_EQ(at, stream.size());
  EXPECT_TRUE(stream.ends_with("data: [DONE]\n\n"));
  return events;
}

std::vector<Json> typed_events_of(const std::string& stream) {
  std::vector<Json> events;
  size_t at = 0;
  while (at < stream.size()) {
    size_t end = stream.find("\n\n", at), line = stream.find("\ndata: ", at);
    EXPECT_NE(end, std::string::npos) << stream;
    EXPECT_LT(line, end) << stream;
    if (end == stream.npos || line > end) break;
    events.push_back(Json::parse(stream.substr(line + 7, end - line - 7), nullptr, false));
    EXPECT_FALSE(events.back().is_discarded()) << stream.substr(at, end - at);
    EXPECT_EQ(stream.substr(at, line - at), "event: " + events.back().value("type", ""));
    at = end + 2;
  }
  return events;
}

}  // namespace banyan::test
