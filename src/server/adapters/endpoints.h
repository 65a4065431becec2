// Endpoints that list, load and unload LoRA adapters: vLLM's, SGLang's and llama.cpp's. Loading
// opens files of this machine that a client names, so it needs ServerConfig::runtime_adapters.
#pragma once

#include "server/http/http.h"
#include "server/service.h"

namespace banyan {

// vLLM: POST /v1/load_lora_adapter {lora_name, lora_path}, /v1/unload_lora_adapter {lora_name};
// they answer in words. SGLang: the same without /v1; they answer with all adapters.
void load_adapter(Service& service, HttpRequest request, ResponderPtr responder);
void unload_adapter(Service& service, HttpRequest request, ResponderPtr responder);

// llama.cpp: GET /lora-adapters lists {id, path, scale}; POST chooses by {id, scale} the one of
// requests that name none.
void llama_adapters(Service& service, HttpRequest request, ResponderPtr responder);
void set_llama_adapters(Service& service, HttpRequest request, ResponderPtr responder);

}  // namespace banyan
