// What an Llm is made of, for the layers above it in this library: types that its public header
// does not define. Safe from every thread.
#pragma once

#include <memory>

#include "banyan/llm.h"
#include "grammar/run/matcher.h"
#include "text/chat_template.h"
#include "text/tokenizer/tokenizer.h"

namespace banyan {

const Tokenizer* tokenizer_of(const Llm& llm);  // null without tokenizer files

// kUnsupported when there is none, kCorrupt when it cannot be read.
Result<const ChatTemplate*> chat_template_of(const Llm& llm);

// One that comes with a request, parsed and remembered. kInvalidArgument: it cannot be read;
// kExhausted: it is too long.
Result<std::shared_ptr<const ChatTemplate>> request_template(const Llm& llm,
                                                             const std::string& source);

using CompiledGrammarPtr = std::shared_ptr<const CompiledGrammar>;

// A request's grammar over this model's vocabulary, compiled on the caller's thread and remembered;
// kExhausted names what was too large. kUnsupported without a tokenizer, or if the model has no
// end-of-text token that could end an output.
Result<CompiledGrammarPtr> compile_grammar(const Llm& llm, const GrammarSource& grammar);
// The same if it is remembered, else null: never waits.
CompiledGrammarPtr find_compiled(const Llm& llm, const GrammarSource& grammar);
// A constraint of a request of these options by that grammar: each sample needs its own.
std::shared_ptr<TokenConstraint> constraint_of(const Llm& llm, const GenerationOptions& options,
                                               CompiledGrammarPtr compiled);
// Llm::to_tokens for a caller who has compiled the request's grammar.
Result<GenerateRequest> to_tokens(const Llm& llm, const TextRequest& request,
                                  CompiledGrammarPtr compiled);

}  // namespace banyan
