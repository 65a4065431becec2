// JSON endpoints: a worker parses the body, the I/O thread uses the result, and any error in the
// body becomes an error answer.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "banyan/llm.h"
#include "llm/messages/message_parser.h"
#include "server/fields/request.h"
#include "server/http/http.h"
#include "server/openai/responses/store.h"
#include "server/service.h"

namespace banyan {

// What a body reader may use. Safe to use on a worker.
struct RequestContext {
  const Llm& llm;
  std::string model_name;                      // as served
  std::vector<std::string> served_names = {};  // requests must use one of these; empty: any
  std::string request_id;
  int64_t created_s = 0;  // Unix time
  std::chrono::steady_clock::time_point received;
  JsonSchemaOptions json = {};  // style of constrained JSON
  ChatSyntax syntax = {};       // how the model writes tool calls and reasoning
  std::shared_ptr<const CompiledGrammars> compiled = {};  // those that this request waited for
  std::shared_ptr<ResponseStore> responses = {};          // null: not stored
  std::string owner = {};                                 // owns what the request stores
  bool verbose = false;                                   // chat answers include their prompts
  RequestDefaults defaults = {};
  std::vector<std::string> adapters = {};  // names, sorted
  bool routed = false;                     // engines elsewhere run the request
  bool takes_adapters = false;             // adapters may be loaded

  // Whether a request may use this name for the model, or for the model with an adapter. Where
  // adapters may be loaded, a name that is neither must not be answered by the model alone.
  bool may_be_called(std::string_view name) const;
  // The adapter that a model's name stands for: "ADAPTER", or "MODEL:ADAPTER" as for SGLang.
  // Absent: none.
  std::optional<std::string> adapter_of(std::string_view name) const;
  bool is_model(std::string_view name) const;
};

RequestContext context_of(const Service& service, const HttpRequest& request);

// Parses the body as JSON, with packed prompts (base/packed_json.h); a syntax error is a 400.
Parsed<Json> parse_body(std::string_view body);

// Sends an error. A limit exceeded while parsing the body counts as the client's error.
void respond_error(Responder& responder, const RequestError& error);

// Runs read() -> Parsed<T> on a worker, then use(T) on the I/O thread.
template <class T, class Read, class Use>
void make_on_worker(Service& service, const std::string& client, ResponderPtr responder, Read read,
                    Use use) {
  bool queued = service.run_on_worker(
      client,
      [read = std::move(read)]() -> Result<Parsed<T>> {
        Parsed<T> made = read();
        if (!made && made.error().error.code == ErrorCode::kExhausted) {
          made.error().error.code = ErrorCode::kInvalidArgument;
        }
        return made;
      },
      [responder, use = std::move(use)](Result<Parsed<T>> made) mutable {
        if (!made) return respond_error(*responder, made.error());
        if (!*made) return respond_error(*responder, made->error());
        use(std::move(**made));
      });
  if (!queued) responder->respond_error(503, "too many requests are queued; retry later");
}

// Likewise, for read(context, body) of a JSON body.
template <class T, class Read, class Use>
void read_on_worker(Service& service, const std::string& client, RequestContext context,
                    std::shared_ptr<const std::string> body, ResponderPtr responder, Read read,
                    Use use) {
  make_on_worker<T>(
      service, client, std::move(responder),
      [context = std::move(context), body = std::move(body), read]() -> Parsed<T> {
        Parsed<Json> json = parse_body(*body);
        if (!json) return std::unexpected(std::move(json).error());
        return read(context, *json);
      },
      std::move(use));
}

template <class T, class Read, class Use>
void read_on_worker(Service& service, HttpRequest request, ResponderPtr responder, Read read,
                    Use use) {
  auto body = std::make_shared<const std::string>(std::move(request.body));
  read_on_worker<T>(service, request.client, context_of(service, request), std::move(body),
                    std::move(responder), std::move(read), std::move(use));
}

// A complete endpoint whose JSON answer is built on the worker.
using JsonEndpoint = Parsed<Json> (*)(const RequestContext& context, const Json& body);
void answer_json(Service& service, HttpRequest request, ResponderPtr responder,
                 JsonEndpoint endpoint);

}  // namespace banyan
