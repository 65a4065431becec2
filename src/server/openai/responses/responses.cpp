// POST /v1/responses, and access to stored responses.
#include <fmt/format.h>

#include <random>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/quote.h"
#include "server/openai/format.h"
#include "server/openai/responses/answer.h"
#include "server/openai/responses/endpoints.h"
#include "server/openai/responses/request.h"
#include "server/openai/responses/store.h"

namespace banyan {
namespace {

// A random id. It must not be guessable, and X-Request-Id need not be unique.
std::string new_response_id() {
  thread_local std::random_device device;
  return fmt::format("resp_{:08x}{:08x}{:08x}{:08x}", device(), device(), device(), device());
}

void no_such_response(Responder& responder, std::string_view id) {
  responder.respond_error(404,
                          fmt::format("there is no response {}; it was never stored, or has been "
                                      "forgotten",
                                      quote(id)),
                          "response_id", "response_not_found");
}

constexpr std::string_view kInputItems = "/input_items";

std::string list_of(const std::string& items) {
  return R"({"object":"list","data":)" + items +
         R"(,"first_id":null,"last_id":null,"has_more":false})";
}

}  // namespace

Parsed<GenerationPlan> plan_response(const RequestContext& context, const Json& body) {
  RequestFields fields(body);
  ResponsesRequest request = TRY(read_responses_request(context, fields));
  std::string model = answered_model(fields, context);
  GenerationPlan plan(context.compiled);
  std::string id = new_response_id();
  plan.rids = read_rids(fields, id);
  plan.stream = request.stream;
  TRY(fields.finish());
  ToolNames custom = request.chat.tools.custom;
  auto options = plan_messages(context, std::move(request.chat), plan);
  if (!options) {
    RequestError error = std::move(options).error();
    if (error.param == "messages") error.param = "input";
    return std::unexpected(std::move(error));
  }
  ResponseHead head = {.id = std::move(id),
                       .model = std::move(model),
                       .owner = context.owner,
                       .created_s = context.created_s,
                       .stream = request.stream,
                       .custom = std::move(custom),
                       .settings = std::move(request.settings),
                       .warnings = {},
                       .input = std::move(request.input),
                       .messages = std::move(request.messages),
                       .store = request.store ? context.responses : nullptr};
  if (!plan.warnings.empty()) head.warnings = plan.warnings;
  plan.answer = std::make_unique<ResponsesAnswer>(std::move(head), *options);
  return plan;
}

Parsed<Json> count_response_tokens(const RequestContext& context, const Json& body) {
  RequestFields fields(body);
  ResponsesRequest request = TRY(read_responses_request(context, fields));
  answered_model(fields, context);
  TRY(fields.finish());
  return Json{{"object", "response.input_tokens"},
              {"input_tokens", TRY(count_prompt_tokens(context, std::move(request.chat.prompt)))}};
}

void handle_count_response_tokens(Service& service, HttpRequest request, ResponderPtr responder) {
  answer_json(service, std::move(request), std::move(responder), count_response_tokens);
}

void handle_responses(Service& service, HttpRequest request, ResponderPtr responder) {
  generate(service, std::move(request), std::move(responder), plan_response);
}

void show_response(Service& service, HttpRequest request, ResponderPtr responder) {
  std::string_view id = request.path_argument;
  bool items = id.ends_with(kInputItems);
  if (items) id.remove_suffix(kInputItems.size());
  auto found = service.responses()->find(id, service.owner_of(request));
  if (!found) return no_such_response(*responder, id);
  if (request.parameter("stream").value_or("false") == "true") {
    return responder->respond_error(400, "stream: a response that is read again comes whole",
                                    "stream");
  }
  responder->respond(200, items ? list_of(found->input) : found->response);
}

void delete_response(Service& service, HttpRequest request, ResponderPtr responder) {
  const std::string& id = request.path_argument;
  if (!service.responses()->erase(id, service.owner_of(request))) {
    return no_such_response(*responder, id);
  }
  responder->respond(200, Json{{"id", id}, {"object", "response"}, {"deleted", true}});
}

void cancel_response(Service& service, HttpRequest request, ResponderPtr responder) {
  std::string_view id = request.path_argument;
  if (!id.ends_with("/cancel")) {
    return responder->respond_error(404, "there is nothing at " + request.path, {}, "unknown_url");
  }
  id.remove_suffix(std::string_view("/cancel").size());
  if (!service.responses()->find(id, service.owner_of(request))) {
    return no_such_response(*responder, id);
  }
  responder->respond_error(400, "only background responses can be cancelled, and there are none");
}

}  // namespace banyan
