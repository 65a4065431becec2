// Reads output constraints: OpenAI's response_format and the equivalent fields of SGLang, vLLM and
// llama-server. Shared by all endpoints.
//
// Stateless; thread-safe.
#pragma once

#include <optional>
#include <string>

#include "banyan/grammar.h"
#include "server/fields/request.h"

namespace banyan {

struct Constraint {
  GrammarSource grammar;
  std::string field;  // the field it came from, for errors
};

// `json` is the default JSON style. Two fields that both set a constraint are an error that names
// them.
std::optional<Constraint> read_constraint(RequestFields& fields, const JsonSchemaOptions& json);

}  // namespace banyan
