#include "server/status/decode_limit.h"

#include <algorithm>

#include "base/json.h"
#include "engine/work.h"
#include "server/status/count_parameter.h"

namespace banyan {
namespace {

struct Asked {
  int64_t sequences, context;
};

Result<Asked> read_asked(const Service& service, const HttpRequest& request) {
  int64_t running = service.engine_config().running_max;
  int64_t context = service.engine_info().context_length_tokens;
  return Asked{.sequences = TRY(count_parameter(request, "sequences", 1, running)),
               .context = TRY(count_parameter(request, "context", 1, context))};
}

Json limit_json(const EngineInfo& info, const Asked& asked, const MachineLimits& limits) {
  Work work = decode_work(info, asked.sequences, asked.context);
  double reading_s = work.bytes / limits.bytes_per_s;
  double computing_s = work.seconds(limits.operations_per_s);
  double tokens = asked.sequences;
  return {{"tokens_per_s_limit", tokens / std::max(reading_s, computing_s)},
          {"bound_by", reading_s >= computing_s ? "memory" : "arithmetic"},
          {"sequences", asked.sequences},
          {"context_tokens", asked.context},
          {"bytes_per_token", work.bytes / tokens},
          {"operations_per_token", work.all_operations() / tokens},
          {"bandwidth_bytes_per_s", limits.bytes_per_s},
          {"operations_per_s", work.all_operations() / computing_s}};
}

}  // namespace

void decode_limit(Service& service, HttpRequest request, ResponderPtr responder) {
  Result<Asked> asked = read_asked(service, request);
  if (!asked) return responder->respond_error(400, asked.error().message);
  service.machine_meter().ask(
      *service.engine(), service.engine_config(),
      [&service, asked = *asked, responder](const MachineLimits* limits) {
        if (limits != nullptr) {
          return responder->respond(200, limit_json(service.engine_info(), asked, *limits));
        }
        responder->respond_error(
            503, "the machine's limits are measured while no request runs; ask again then");
      });
}

}  // namespace banyan
