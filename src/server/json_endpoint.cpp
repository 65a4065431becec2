#include "server/json_endpoint.h"

#include "base/error.h"
#include "server/error.h"

namespace banyan {

RequestContext context_of(const Service& service, const HttpRequest& request) {
  using std::chrono::duration_cast, std::chrono::seconds, std::chrono::system_clock;
  auto now = duration_cast<seconds>(system_clock::now().time_since_epoch());
  return {service.llm(),
          service.model_name(),
          request.id,
          now.count(),
          std::chrono::steady_clock::now(),
          {.flexible_whitespace = service.config().json_flexible_whitespace},
          service.chat_syntax()};
}

Parsed<Json> parse_body(const std::string& body) {
  Result<Json> json = parse_json(body, "the body", {.bytes_max = body.size()});
  if (!json) return invalid_argument("{}", json.error().message);
  return std::move(*json);
}

void respond_error(Responder& responder, const RequestError& error) {
  responder.respond_error(http_status(error.error.code), error.error.message, error.param,
                          error.code);
}

void answer_json(Service& service, HttpRequest request, ResponderPtr responder,
                 JsonEndpoint endpoint) {
  read_on_worker<Json>(service, std::move(request), responder, endpoint,
                       [responder](const Json& answer) { responder->respond(200, answer); });
}

}  // namespace banyan
