// The parts of an Llm whose types its public header does not define, for the layers above.
// Thread-safe.
#pragma once

#include <memory>

#include "banyan/llm.h"
#include "engine/assemble.h"
#include "grammar/run/matcher.h"
#include "text/chat_template.h"
#include "text/tokenizer/tokenizer.h"

namespace banyan {

// Llm::load, whose engine stores states elsewhere as well.
Result<std::unique_ptr<Llm>> load_with_storage(const EngineConfig& config,
                                               const LoadProgress& progress,
                                               EngineAssembly::Storage storage);

const Tokenizer* tokenizer_of(const Llm& llm);  // null without tokenizer files

// kUnsupported without a template, kCorrupt if it cannot be parsed.
Result<const ChatTemplate*> chat_template_of(const Llm& llm);

// Parses and caches a template from a request. kInvalidArgument: it cannot be parsed; kExhausted:
// it is too long.
Result<std::shared_ptr<const ChatTemplate>> request_template(const Llm& llm,
                                                             const std::string& source);

using CompiledGrammarPtr = std::shared_ptr<const CompiledGrammar>;

// Compiles a request's grammar for this model's vocabulary on the caller's thread, and caches it.
// kExhausted names what was too large. kUnsupported without a tokenizer, or if the model has no
// end-of-text token to end an output with.
Result<CompiledGrammarPtr> compile_grammar(const Llm& llm, const GrammarSource& grammar);
// The same from the cache; null if it is not there. Never waits.
CompiledGrammarPtr find_compiled(const Llm& llm, const GrammarSource& grammar);
// Creates the constraint of one sample from the compiled grammar; each sample needs its own.
std::shared_ptr<TokenConstraint> constraint_of(const Llm& llm, const GenerationOptions& options,
                                               CompiledGrammarPtr compiled);
// Llm::to_tokens for callers that have compiled the grammar already.
Result<GenerateRequest> to_tokens(const Llm& llm, const TextRequest& request,
                                  CompiledGrammarPtr compiled);

}  // namespace banyan
