// Which LoRA adapter a request gets, under the names of every API.
#pragma once

#include <cstddef>
#include <string>

#include "server/fields/request.h"
#include "server/json/endpoint.h"

namespace banyan {

// The adapter's name, or "" for the model as it is: lora_path; or the one that `model` stands for;
// or llama.cpp's lora, a list of {id, scale} of which one has scale 1; or the server's default.
// Whether the adapter exists is for the engine to say.
std::string read_adapter(RequestFields& fields, const RequestContext& context);
// The same for one of `prompts` prompts, where lora_path may be a list with an entry for each.
std::string read_adapter_of(RequestFields& fields, const RequestContext& context, size_t prompt,
                            size_t prompts);

}  // namespace banyan
