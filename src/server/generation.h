// How a generating endpoint works, whatever its protocol: a body becomes a plan on a worker, what
// it asks for of grammars is compiled unless it is known (server/grammar_queue.h), the plan's
// sequences run in the engine, and their text goes to the client through the protocol's Answer, at
// once or in the end.
//
// A client that goes takes all its sequences with it. A stop string ends its sequence in the engine
// as soon as it is seen.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "banyan/llm.h"
#include "llm/text_stream.h"
#include "server/fields/request.h"
#include "server/fields/sampling.h"
#include "server/http/http.h"
#include "server/json/endpoint.h"
#include "server/service.h"

namespace banyan {

// One sequence of an answer: a sample of one of the request's prompts.
struct Choice {
  size_t index = 0;   // prompt * n + sample
  size_t prompt = 0;  // index of its prompt
  int64_t prompt_tokens = 0;
  int64_t max_new_tokens = 0;
  TextStream stream;
  // The client has yet to take what it was sent before. A format whose events repeat what came
  // before may leave out all but the last, and so cannot pile up.
  bool behind = false;
};

// How a protocol writes an answer. Its objects belong to the I/O thread once they are made.
//
// Virtual although interfaces are few: many wire formats, each streamed and whole, over one way of
// running, cancelling and failing.
class Answer {
 public:
  virtual ~Answer() = default;

  // An event of a choice, with what its text stream made of it. Appends to `frames` what a
  // streaming client is sent for it; an answer that is not streamed leaves `frames` alone.
  virtual void take(const Choice& choice, const TokenEvent& event, TextDelta delta,
                    std::string& frames) = 0;
  // The last frames of a stream whose choices have all ended.
  virtual void end(std::span<const Choice> choices, std::string& frames) = 0;
  // The answer that is not streamed.
  virtual std::string whole(std::span<const Choice> choices) = 0;

  // What a stream is sent as.
  virtual std::string_view stream_type() const { return "text/event-stream"; }
  // The last frames of a stream that fails after it has begun: unless a format has its own, the
  // error as OpenAI's and SGLang's servers send it.
  virtual void fail(const RequestError& error, std::string& frames);
};

// What a request asks, ready for the engine.
struct GenerationPlan {
  explicit GenerationPlan(std::shared_ptr<const CompiledGrammars> known = {})
      : compiled(std::move(known)) {}

  std::vector<GenerateRequest> requests;  // one per choice
  std::vector<Choice> choices;
  size_t samples = 1;             // choices per prompt
  std::vector<std::string> rids;  // one for the request, or one per prompt; for /abort_request
  bool stream = false;
  std::vector<std::string> warnings;  // what of the grammars is not enforced; the answer says it
  std::unique_ptr<Answer> answer;
  // Grammars that the request has waited for, and those that it has to wait for: then nothing of
  // the plan may be used, and the request is read again once they are compiled.
  std::shared_ptr<const CompiledGrammars> compiled = {};
  std::map<GrammarSource, std::string> missing = {};  // with the fields that ask for them

  // Adds the samples of one prompt, tokenized here. All prompts have the same number of samples,
  // and there may be as many sequences as the engine's queue holds.
  std::expected<void, RequestError> add_prompt(const Llm& llm, const PromptRequest& prompt);
  // That there is one rid, or one for each prompt.
  std::expected<void, RequestError> check_rids() const;

 private:
  std::shared_ptr<const CompiledGrammar> find_grammar(const Llm& llm,
                                                      const PromptRequest& prompt) const;
  std::expected<void, RequestError> add_samples(
      const Llm& llm, const PromptRequest& prompt,
      const std::shared_ptr<const CompiledGrammar>& grammar);
};

// Reads a request's body. Runs on a worker; RequestErrors become 4xx answers.
using Planner = Parsed<GenerationPlan> (*)(const RequestContext& context, const Json& body);

// Answers `request`.
void generate(Service& service, HttpRequest request, ResponderPtr responder, Planner planner);

}  // namespace banyan
