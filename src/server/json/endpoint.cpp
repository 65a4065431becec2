#include "server/json/endpoint.h"

#include <cstring>
#include <utility>

#include "base/digest.h"
#include "base/error.h"
#include "server/error.h"

namespace banyan {
namespace {

constexpr size_t kValuesMax = 4'000'000;

// Estimates the parsed size of a document, in units of one number. A list or text counts as several
// however short it is: parsing makes "[[],[],[]" twenty times larger.
size_t count_values(std::string_view json) {
  constexpr size_t kTextOrContainer = 4;
  size_t count = 1;
  bool in_text = false;
  for (size_t i = 0; i < json.size(); ++i) {
    char c = json[i];
    if (in_text) {
      if (c == '\\') ++i;
      if (c == '"') in_text = false;
    } else if (c == '"') {
      in_text = true;
      count += kTextOrContainer;
    } else if (c == '[' || c == '{') {
      count += kTextOrContainer;
    } else if (c == ',') {
      ++count;
    }
  }
  return count;
}

}  // namespace

namespace {

// The seed follows from the request's id, so that a run can be repeated on any server.
uint64_t seed_of(std::string_view request_id) {
  Digest digest = Hasher().text("banyan seed").text(request_id).finish();
  uint64_t seed = 0;
  std::memcpy(&seed, digest.bytes.data(), sizeof seed);
  return seed;
}

}  // namespace

RequestContext context_of(const Service& service, const HttpRequest& request) {
  using std::chrono::duration_cast, std::chrono::seconds, std::chrono::system_clock;
  auto now = duration_cast<seconds>(system_clock::now().time_since_epoch());
  RequestDefaults defaults = service.config().defaults;
  defaults.drawn_seed = seed_of(request.id);
  return {service.llm(),
          service.model_name(),
          !service.config().served_model_name.empty(),
          request.id,
          now.count(),
          std::chrono::steady_clock::now(),
          {.flexible_whitespace = service.config().json_flexible_whitespace},
          service.chat_syntax(),
          {},
          service.config().responses_max > 0 ? service.responses() : nullptr,
          service.owner_of(request),
          service.config().verbose,
          std::move(defaults)};
}

Parsed<Json> parse_body(const std::string& body) {
  if (count_values(body) > kValuesMax) {
    return invalid_argument(
        "the body has too many values: more than {} numbers, where a list, an "
        "object or a text counts as 4",
        kValuesMax);
  }
  Result<Json> json = parse_json(body, "the body", {.bytes_max = body.size()});
  if (!json) return invalid_argument("{}", json.error().message);
  return std::move(*json);
}

void respond_error(Responder& responder, const RequestError& error) {
  responder.respond_error(http_status(error.error.code), error.error.message, error.param,
                          error.code, error.details);
}

void answer_json(Service& service, HttpRequest request, ResponderPtr responder,
                 JsonEndpoint endpoint) {
  read_on_worker<Json>(service, std::move(request), responder, endpoint,
                       [responder](const Json& answer) { responder->respond(200, answer); });
}

}  // namespace banyan
