// The generating endpoints, independent of protocol. A worker parses the body into a plan. Grammars
// that are not cached are compiled first (server/grammar_queue.h). The plan's sequences run in the
// engine, and the protocol's Answer formats their text, streamed or at the end.
//
// When a client disconnects, all its sequences are cancelled. A stop string ends its sequence in
// the engine as soon as it is found.
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

// One sequence of an answer: one sample of one of the request's prompts.
struct Choice {
  size_t index = 0;   // prompt x n + sample
  size_t prompt = 0;  // index of its prompt
  int64_t prompt_tokens = 0;
  int64_t max_new_tokens = 0;
  TextStream stream;
  // The client has not read everything that was sent. A format whose events repeat earlier text may
  // then skip all but the last one, so that output does not pile up.
  bool behind = false;
};

inline constexpr std::string_view kEventStream = "text/event-stream";

// Formats an answer in one protocol. Once created, it belongs to the I/O thread.
//
// Virtual, because there are many wire formats, each streamed and whole, over a single way to run,
// cancel and fail.
class Answer {
 public:
  virtual ~Answer() = default;

  // Takes an event of a choice, with the text that the stream decoded from it. Appends the frames
  // for a streaming client to `frames`; an unstreamed answer leaves `frames` alone.
  virtual void take(const Choice& choice, const TokenEvent& event, TextDelta delta,
                    std::string& frames) = 0;
  // Appends the last frames of a stream, after all choices have ended.
  virtual void end(std::span<const Choice> choices, std::string& frames) = 0;
  // Returns the body of an unstreamed answer.
  virtual std::string whole(std::span<const Choice> choices) = 0;

  // Content type of a stream. Server-sent events must follow from the tokens alone, except while a
  // choice is `behind`: a client that lost its server requests the rest from another.
  virtual std::string_view stream_type() const { return kEventStream; }
  // Appends the last frames of a stream that fails midway. By default the error as OpenAI's and
  // SGLang's servers send it.
  virtual void fail(const RequestError& error, std::string& frames);
};

// A parsed request, ready for the engine.
struct GenerationPlan {
  explicit GenerationPlan(std::shared_ptr<const CompiledGrammars> known = {})
      : compiled(std::move(known)) {}

  std::vector<GenerateRequest> requests;  // one per choice
  std::vector<Choice> choices;
  size_t samples = 1;             // choices per prompt
  std::vector<std::string> rids;  // one for the request, or one per prompt; for /abort_request
  bool stream = false;
  // How many choices may be in the engine at a time; 0: all, which its queue then has to hold.
  size_t window = 0;
  // A choice that is cancelled or takes too long fails the request: no part of an answer is of use.
  bool all_or_nothing = false;
  // Reported in the answer: unenforced parts of the grammars, tools that the model is not offered.
  std::vector<std::string> warnings;
  std::unique_ptr<Answer> answer;
  // `compiled`: grammars that the request has waited for. `missing`: grammars still to be compiled.
  // If there are any, the plan is unusable and the request is parsed again once they are compiled.
  std::shared_ptr<const CompiledGrammars> compiled = {};
  std::map<GrammarSource, std::string> missing = {};  // with the fields that they came from

  // Tokenizes one prompt and adds its samples. All prompts have the same number of samples. Without
  // a window, at most as many sequences as the engine's queue holds.
  std::expected<void, RequestError> add_prompt(const Llm& llm, const PromptRequest& prompt);
  // Checks that there is one rid, or one per prompt.
  std::expected<void, RequestError> check_rids() const;

 private:
  std::shared_ptr<const CompiledGrammar> find_grammar(const Llm& llm,
                                                      const PromptRequest& prompt) const;
  std::expected<void, RequestError> add_samples(
      const Llm& llm, const PromptRequest& prompt,
      const std::shared_ptr<const CompiledGrammar>& grammar);
};

// Parses a request's body. Runs on a worker; a RequestError becomes a 4xx answer.
using Planner = Parsed<GenerationPlan> (*)(const RequestContext& context, const Json& body);

// Answers `request`. I/O thread.
void generate(Service& service, HttpRequest request, ResponderPtr responder, Planner planner);

}  // namespace banyan
