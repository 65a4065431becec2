// What a request asks the output to be: OpenAI's response_format and the fields that SGLang, vLLM
// and llama-server have for the same. Read here for every endpoint.
//
// Stateless; safe from many threads at once.
#pragma once

#include <optional>
#include <string>

#include "banyan/grammar.h"
#include "server/fields/request.h"

namespace banyan {

struct Constraint {
  GrammarSource grammar;
  std::string field;  // that asked for it, for errors
};

// `json` is how JSON is written where a request does not say. Two fields that both ask for
// something are an error that names them.
std::optional<Constraint> read_constraint(RequestFields& fields, const JsonSchemaOptions& json);

}  // namespace banyan
