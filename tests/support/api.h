// Runs an endpoint on a request body, without HTTP.
#pragma once

#include <string>
#include <vector>

#include "banyan/llm.h"
#include "base/json.h"
#include "server/generation.h"
#include "support/shared.h"

namespace banyan::test {

struct TinyLlm {
  bool radix_cache = false;  // what is said of cached tokens is always the same without
  bool tokenizer = true;     // tiny_byte_level, with 703 tokens
  bool ends = false;         // </s> ends the output
  int vocabulary = 512;
  int context = 128;
  int page_size = 64;
  int queued_max = 256;
};
// Its folder, with the given chat template; the weights are drawn at random.
EngineConfig tiny_text_model(const TemporaryFolder& folder, const std::string& chat_template = {},
                             const TinyLlm& options = {});
// A model with random weights and the given chat template.
std::unique_ptr<Llm> tiny_llm(const std::string& chat_template = {}, const TinyLlm& options = {});

RequestContext context_for(const Llm& llm);

// What a client gets: the body of a whole answer, or the bytes of a stream; "error PARAM: MESSAGE"
// when the request is refused, by its reader or by the engine.
std::string ask(Llm& llm, Planner planner, const std::string& body);
// The same for a plan that waits for no grammar.
std::string run_plan(Llm& llm, GenerationPlan& plan);
Json ask_json(Llm& llm, Planner planner, const std::string& body);

// The JSON of each "data:" line but the last, which is [DONE].
std::vector<Json> events_of(const std::string& stream);
// The same of a stream whose events are named by their "type" (server/json/writer.h).
std::vector<Json> typed_events_of(const std::string& stream);

}  // namespace banyan::test
