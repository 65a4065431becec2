#include "server/json/endpoint.h"

#include <array>
#include <cstring>
#include <utility>

#include "base/digest.h"
#include "base/error.h"
#include "base/packed_json.h"
#include "server/error.h"

namespace banyan {
namespace {

constexpr size_t kValuesMax = 4'000'000;
constexpr std::array<std::string_view, 2> kTokenKeys = {"prompt", "input_ids"};

// By the byte that begins or separates values: their parsed size, in units of one number. A list or
// text counts as several however short it is: parsing makes "[[],[],[]" twenty times larger.
constexpr std::array<uint8_t, 256> kSizes = [] {
  std::array<uint8_t, 256> sizes = {};
  sizes[','] = 1;
  for (unsigned char c : {'"', '[', '{'}) sizes[c] = 4;
  return sizes;
}();

// Estimates the parsed size of a document.
size_t count_values(std::string_view json) {
  size_t count = 1;
  for (size_t i = 0; i < json.size(); ++i) {
    count += kSizes[static_cast<unsigned char>(json[i])];
    if (json[i] != '"') continue;
    for (++i; i < json.size() && json[i] != '"'; ++i) {
      if (json[i] == '\\') ++i;
    }
  }
  return count;
}

// The seed follows from the request's id, so that a run can be repeated on any server.
uint64_t seed_of(std::string_view request_id) {
  Digest digest = Hasher().text("banyan seed").text(request_id).finish();
  uint64_t seed = 0;
  std::memcpy(&seed, digest.bytes.data(), sizeof seed);
  return seed;
}

}  // namespace

bool RequestContext::is_model(std::string_view name) const {
  return name == model_name || std::ranges::find(served_names, name) != served_names.end();
}

bool RequestContext::may_be_called(std::string_view name) const {
  bool any = served_names.empty() && !takes_adapters;
  return any || is_model(name) || adapter_of(name);
}

// A model may have an adapter's name. After the model's own name, what follows a colon must be an
// adapter: the engine refuses what is none.
std::optional<std::string> RequestContext::adapter_of(std::string_view name) const {
  auto known = [this](std::string_view adapter) {
    return std::ranges::find(adapters, adapter) != adapters.end();
  };
  constexpr std::string_view kLatest = ":latest";  // which Ollama's clients add
  if (name.ends_with(kLatest) && !known(name)) name.remove_suffix(kLatest.size());
  if (!takes_adapters || is_model(name)) return std::nullopt;
  if (known(name)) return std::string(name);
  for (size_t colon = name.find(':'); colon != name.npos; colon = name.find(':', colon + 1)) {
    std::string_view model = name.substr(0, colon), adapter = name.substr(colon + 1);
    if (is_model(model) || (served_names.empty() && known(adapter))) return std::string(adapter);
  }
  return std::nullopt;
}

RequestContext context_of(const Service& service, const HttpRequest& request) {
  using std::chrono::duration_cast, std::chrono::seconds, std::chrono::system_clock;
  auto now = duration_cast<seconds>(system_clock::now().time_since_epoch());
  RequestDefaults defaults = service.config().defaults;
  defaults.drawn_seed = seed_of(request.id);
  std::vector<std::string> adapters;
  for (AdapterInfo& adapter : service.adapters()) adapters.push_back(std::move(adapter.name));
  return {service.llm(),
          service.model_name(),
          service.config().served_model_names,
          request.id,
          now.count(),
          std::chrono::steady_clock::now(),
          {.flexible_whitespace = service.config().json_flexible_whitespace},
          service.chat_syntax(),
          {},
          service.config().responses_max > 0 ? service.responses() : nullptr,
          service.owner_of(request),
          service.config().verbose,
          std::move(defaults),
          std::move(adapters),
          !service.has_engine(),
          service.engine_info().adapters_max > 0};
}

Parsed<Json> parse_body(std::string_view body) {
  if (count_values(body) > kValuesMax) {
    return invalid_argument(
        "the body has too many values: more than {} numbers, where a list, an "
        "object or a text counts as 4",
        kValuesMax);
  }
  Result<Json> json = parse_packed_json(body, "the body", {.bytes_max = body.size()}, kTokenKeys);
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
