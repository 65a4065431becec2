#include "server/status/profile.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "engine/assemble.h"
#include "llm/engine_thread.h"
#include "server/fields/request.h"
#include "server/json/endpoint.h"
#include "server/json/writer.h"

namespace banyan {
namespace {

constexpr size_t kEventsMax = 250'000;  // 18 MB; twice that as JSON
constexpr int64_t kStepsMax = 1'000'000;

// The number of steps; 0: until /stop_profile.
Parsed<int64_t> read_steps(const RequestContext&, const Json& body) {
  RequestFields fields(body);
  int64_t steps = fields.integer("num_steps", 0, 1, kStepsMax);
  fields.accept_only({{"activities", R"([["CPU"], ["GPU"], ["CPU", "GPU"], ["GPU", "CPU"]])"},
                      {"record_shapes", "[true]"},
                      {"with_stack", "[false]"},
                      {"profile_by_stage", "[false]"}});
  if (const Json* folder = fields.find("output_dir")) {
    fields.fail(
        "output_dir",
        " is " + show(*folder) + ": no file is written; /stop_profile answers with the trace",
        ErrorCode::kUnsupported);
  }
  fields.refuse({"start_step", "profile_stages", "profile_prefix", "merge_profiles"});
  TRY(fields.finish());
  return steps;
}

std::string event_name(const TraceEvent& event) {
  std::string name = event.name;
  if (event.index >= 0) name += " " + std::to_string(event.index);
  if (*event.detail != 0) name += std::string(" ") + event.detail;
  return name;
}

void write_event(const TraceEvent& event, int64_t origin_ns, JsonWriter& writer) {
  auto us = [](int64_t ns) { return ns / 1e3; };
  writer.begin_object()
      .field("name", event_name(event))
      .field("cat", event.category)
      .field("ph", "X")
      .field("pid", 1)
      .field("tid", 1)
      .field("ts", us(event.begin_ns - origin_ns))
      .field("dur", us(event.end_ns - event.begin_ns));
  writer.key("args").begin_object();
  if (event.rows >= 0) writer.field("rows", event.rows);
  if (event.k >= 0) writer.field("n", event.n).field("k", event.k);
  writer.end_object().end_object();
}

void write_thread_name(JsonWriter& writer) {
  writer.begin_object().field("name", "thread_name").field("ph", "M").field("pid", 1);
  writer.field("tid", 1).key("args").begin_object().field("name", "engine").end_object();
  writer.end_object();
}

Json about(const Service& service) {
  return {{"model", service.model_name()},
          {"kernels", service.engine_info().kernels},
          {"threads", service.engine_info().threads},
          {"version", service.config().version}};
}

void start(Service& service, int64_t steps, const ResponderPtr& responder) {
  std::shared_ptr<TraceLog>& log = service.profile();
  if (log && !log->ended()) {
    return responder->respond_error(400, "a profile is running; POST /stop_profile ends it");
  }
  log = std::make_shared<TraceLog>(kEventsMax, steps);
  service.engine()->run([log](Engine& engine) { EngineAssembly::trace(engine, log); },
                        [responder] {
                          responder->respond(
                              200, Json{{"success", true}, {"message", "Start profiling."}});
                        });
}

}  // namespace

std::string chrome_trace(const TraceLog& log, const Json& about) {
  std::string out;
  JsonWriter writer(out);
  writer.begin_object().field("displayTimeUnit", "ms");
  writer.key("otherData").begin_object().field("about", about);
  writer.field("steps", log.steps()).field("complete", !log.full()).end_object();
  writer.key("traceEvents").begin_list();
  write_thread_name(writer);
  int64_t origin_ns = log.events().empty() ? 0 : log.events()[0].begin_ns;
  for (const TraceEvent& event : log.events()) origin_ns = std::min(origin_ns, event.begin_ns);
  for (const TraceEvent& event : log.events()) write_event(event, origin_ns, writer);
  writer.end_list().end_object();
  return out;
}

void start_profile(Service& service, HttpRequest request, ResponderPtr responder) {
  if (request.body.empty()) return start(service, 0, responder);
  read_on_worker<int64_t>(
      service, std::move(request), responder, read_steps,
      [&service, responder](int64_t steps) { start(service, steps, responder); });
}

void stop_profile(Service& service, HttpRequest request, ResponderPtr responder) {
  std::shared_ptr<TraceLog> log = std::exchange(service.profile(), nullptr);
  if (!log) {
    return responder->respond_error(400, "no profile is running; POST /start_profile begins one");
  }
  auto write = [&service, log, responder, client = request.client, about = about(service)] {
    bool queued = service.run_on_worker(
        client, [log, about]() -> Result<std::string> { return chrome_trace(*log, about); },
        [responder](Result<std::string> trace) {
          if (!trace) return responder->respond_error(503, trace.error().message);
          responder->respond(200, *std::move(trace));
        });
    if (!queued) responder->respond_error(503, "too many requests are queued; retry later");
  };
  service.engine()->run([log](Engine& engine) { EngineAssembly::end_trace(engine, *log); }, write);
}

}  // namespace banyan
