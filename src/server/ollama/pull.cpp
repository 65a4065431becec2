// POST /api/pull: downloads a model; progress is streamed unless the request sets stream to false.
#include <memory>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/json_text.h"
#include "server/error.h"
#include "server/ollama/endpoints.h"
#include "server/ollama/format.h"

namespace banyan {
namespace {

struct PullRequest {
  std::string name;  // on the hub
  bool stream = true;
  bool served = false;  // it is the model being served
};

// Translates "hf.co/OWNER/NAME:latest", as Ollama users write it.
std::string hub_name(std::string_view name) {
  constexpr std::string_view kScheme = "https://", kLatest = ":latest";
  if (name.starts_with(kScheme)) name.remove_prefix(kScheme.size());
  for (std::string_view host : {"hf.co/", "huggingface.co/"}) {
    if (!name.starts_with(host)) continue;
    name.remove_prefix(host.size());
    break;  // what follows is an owner, whatever its name
  }
  if (name.ends_with(kLatest)) name.remove_suffix(kLatest.size());
  return std::string(name);
}

Parsed<PullRequest> read_pull(const RequestContext& context, const Json& body) {
  RequestFields fields(body);
  PullRequest pull{.stream = fields.flag("stream", true)};
  std::string model = fields.string("model", kNameBytesMax);
  if (model.empty()) model = fields.string("name", kNameBytesMax);  // older clients
  if (model.empty()) fields.fail("model", " is missing");
  fields.refuse({"insecure", "username", "password"});
  TRY(fields.finish());
  pull.name = hub_name(model);
  pull.served = model == context.model_name || pull.name == context.model_name;
  return pull;
}

// The answer to one request. It starts only after the hub has answered, so that an invalid name
// gets an error status.
class PullAnswer {
 public:
  PullAnswer(ResponderPtr responder, bool stream)
      : responder_(std::move(responder)), stream_(stream) {}

  void take(const PullProgress& progress) {
    size_t hash = progress.digest.find(':') + 1;  // 0 without an algorithm prefix
    say({{"status", "pulling " + progress.digest.substr(hash, 12)},
         {"digest", progress.digest},
         {"total", progress.bytes_total},
         {"completed", progress.bytes_done}});
  }

  void end(const Status& outcome) {
    if (!outcome) return fail(outcome.error());
    if (!stream_) return responder_->respond(200, Json{{"status", "success"}});
    for (const char* status : {"verifying sha256 digest", "writing manifest", "success"}) {
      say({{"status", status}});
    }
    responder_->finish();
  }

  Responder& responder() { return *responder_; }

 private:
  void say(const Json& line) {
    if (!stream_) return;
    if (!responder_->started()) {
      responder_->begin_stream("application/x-ndjson");
      say({{"status", "pulling manifest"}});
    }
    responder_->send(dump_json(line) + "\n");
  }

  void fail(const Error& error) {
    if (!responder_->started()) return responder_->respond_error(status_of(error), error.message);
    say(ollama_error(0, error.message, {}));
    responder_->finish();
  }

  // A hub that fails to answer, or answers incorrectly, is not this server's error.
  static int status_of(const Error& error) {
    bool hub = error.code == ErrorCode::kIo || error.code == ErrorCode::kCorrupt;
    return hub ? 502 : http_status(error.code);
  }

  const ResponderPtr responder_;
  const bool stream_;
};

void start_pull(Service& service, const std::string& client, PullRequest pull,
                ResponderPtr responder) {
  auto answer = std::make_shared<PullAnswer>(std::move(responder), pull.stream);
  if (pull.served) return answer->end({});
  PullQueue::Unwanted unwanted = service.pulls()->start(
      client, std::move(pull.name),
      {.progress = [answer](const PullProgress& progress) { answer->take(progress); },
       .end = [answer](const Status& outcome) { answer->end(outcome); }});
  if (!unwanted) return answer->responder().respond_error(503, "too many models are being pulled");
  answer->responder().on_disconnect([unwanted] { *unwanted = true; });
}

}  // namespace

void handle_ollama_pull(Service& service, HttpRequest request, ResponderPtr responder) {
  if (service.pulls() == nullptr) {
    return ollama_unsupported(service, std::move(request), std::move(responder));
  }
  const ServerConfig& config = service.config();
  if (!config.on_loopback() && config.api_keys.empty()) {
    return responder->respond_error(
        403,
        "/api/pull writes to this machine's disk, so it needs --api-key where other machines "
        "reach the server");
  }
  std::string client = request.client;
  read_on_worker<PullRequest>(service, std::move(request), responder, read_pull,
                              [&service, client, responder](PullRequest pull) {
                                start_pull(service, client, std::move(pull), responder);
                              });
}

}  // namespace banyan
