// POST /worker/states: sends states of a prefix to another engine.
#include <memory>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/signed.h"
#include "server/json/endpoint.h"
#include "server/worker/endpoints.h"
#include "server/worker/states_wire.h"

namespace banyan {
namespace {

Status check(const StatesRequest& request, const EngineInfo& info) {
  if (info.state_digest.empty()) {
    return invalid_argument(
        "this server has not computed its state digest: start it with --disaggregation-mode "
        "prefill");
  }
  if (request.state_digest != info.state_digest) {
    return invalid_argument(
        "state_digest: here it is {}, there {}; states can only be used by a server with the same "
        "model, options, program and kernels (`banyan inspect --digest` lists what counts)",
        info.state_digest, request.state_digest);
  }
  int64_t bytes = 0;
  for (const RestoreUnit& unit : request.units.units) {
    bool known = unit.unit_class >= 0 && unit.unit_class < std::ssize(info.state_classes);
    if (known) bytes += at(info.state_classes, unit.unit_class).unit_bytes;
  }
  // A single unit may have any size: it could not be sent otherwise.
  if (bytes <= kStatesBytesMax || request.units.units.size() == 1) return {};
  return invalid_argument("{} bytes of states are asked for at once; at most {} can be", bytes,
                          kStatesBytesMax);
}

struct Export {
  StatesRequest request;
  std::string records;
  Status outcome;
};

void answer(Service& service, ResponderPtr responder, StatesRequest request) {
  Status good = check(request, service.engine_info());
  if (!good) return responder->respond_error(409, good.error().message);
  auto work = std::make_shared<Export>();
  work->request = std::move(request);
  service.engine()->run(
      [work](Engine& engine) {
        work->outcome = export_units(engine, work->request.units, work->records);
      },
      [work, responder = std::move(responder)] {
        if (work->outcome) {
          return responder->respond(200, std::move(work->records), "application/octet-stream");
        }
        respond_error(*responder, {work->outcome.error()});
      });
}

}  // namespace

void worker_states(Service& service, HttpRequest request, ResponderPtr responder) {
  auto body = std::make_shared<const std::string>(std::move(request.body));
  make_on_worker<StatesRequest>(
      service, request.client, responder,
      [body]() -> Parsed<StatesRequest> { return TRY(read_states_request(*body)); },
      [&service, responder](StatesRequest wanted) {
        answer(service, responder, std::move(wanted));
      });
}

}  // namespace banyan
