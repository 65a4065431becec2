#include "server/worker/worker_info.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>

#include "base/error.h"
#include "server/service.h"
#include "server/worker/wire.h"

namespace banyan {
namespace {

constexpr std::array<const char*, 3> kStates = {"loading", "ready", "draining"};

// One list of members for both directions.
template <class Info, class Visit>
void visit_info(Info& i, Visit visit) {
  visit("epoch", i.epoch);
  visit("model", i.model);
  visit("identity", i.identity);
  visit("state_digest", i.state_digest);
  visit("context_length", i.context_length_tokens);
  visit("page_size", i.page_size_tokens);
  visit("pages_total", i.pages_total);
  visit("pages_free", i.pages_free);
  visit("max_running_requests", i.running_max);
  visit("max_queued_requests", i.queued_max);
  visit("running", i.running);
  visit("queued", i.queued);
  visit("progress", i.progress);
  visit("steps", i.steps);
  visit("prompt_tokens", i.prompt_tokens);
  visit("cached_tokens", i.cached_tokens);
  visit("generated_tokens", i.generated_tokens);
}

std::string identity_of(const Service& service) {
  const EngineInfo& info = service.engine_info();
  std::string identity = fmt::format("{}|draws {}|{}|{}|{}|{}|{} tokens, {} parameters|page {}",
                                     info.state_digest.empty() ? "no digest" : info.state_digest,
                                     kDrawRevision, info.architecture, info.kernels,
                                     service.engine_config().dtype, info.kv_cache_dtype,
                                     info.vocabulary, info.parameters_total, info.page_size_tokens);
  if (info.tp_size > 1) identity += fmt::format("|{} ranks", info.tp_size);
  return identity;
}

uint64_t epoch_of(const Service& service) {
  auto started = service.started_at().time_since_epoch().count();
  return static_cast<uint64_t>(started) ^ (static_cast<uint64_t>(getpid()) << 40);
}

}  // namespace

WorkerInfo worker_info_of(const Service& service) {
  WorkerInfo info{.state = static_cast<WorkerInfo::State>(service.state()),
                  .epoch = epoch_of(service) >> 1};
  if (service.state() == Service::State::kLoading) return info;
  if (service.leaving()) info.state = WorkerInfo::State::kDraining;
  const EngineStats& stats = service.engine_stats();
  const EngineConfig& config = service.engine_config();
  info.model = service.model_name();
  info.identity = identity_of(service);
  info.state_digest = service.engine_info().state_digest;
  info.context_length_tokens = service.engine_info().context_length_tokens;
  info.page_size_tokens = service.engine_info().page_size_tokens;
  info.pages_total = stats.pages_total;
  info.pages_free = stats.pages_free + stats.pages_cached;
  info.running_max = config.running_max;
  info.queued_max = config.queued_max;
  info.running = stats.running;
  info.queued = stats.queued;
  info.steps = stats.steps;
  info.progress = stats.steps;
  for (const CacheLayerStats& layer : stats.storage.layers) info.progress += layer.read_units;
  info.prompt_tokens = stats.prompt_tokens;
  info.cached_tokens = stats.cached_tokens;
  info.generated_tokens = stats.generated_tokens;
  return info;
}

Json to_json(const WorkerInfo& info) {
  Json json = {{"version", kWorkerProtocol}, {"state", kStates[static_cast<size_t>(info.state)]}};
  visit_info(info, [&](const char* name, const auto& member) { json[name] = member; });
  return json;
}

Result<WorkerInfo> read_worker_info(std::string_view text) {
  Json json = TRY(parse_json(text, "/worker/info", {.bytes_max = 64 << 10}));
  if (!json.is_object()) return corrupt("/worker/info: not an object");
  if (json.value("version", Json()) != kWorkerProtocol) {
    return unsupported(
        "/worker/info: another version of the protocol; run router and workers of "
        "one build");
  }
  WorkerInfo info;
  bool good = false;
  for (size_t i = 0; i < kStates.size(); ++i) {
    if (json.value("state", Json()) != kStates[i]) continue;
    info.state = static_cast<WorkerInfo::State>(i);
    good = true;
  }
  visit_info(info, [&](const char* name, auto& member) {
    auto found = json.find(name);
    constexpr bool kText = std::is_same_v<std::decay_t<decltype(member)>, std::string>;
    good = good && found != json.end() && (kText ? found->is_string() : found->is_number_integer());
    if (good) found->get_to(member);
  });
  if (!good) return corrupt("/worker/info: a member is missing or of the wrong type");
  return info;
}

std::optional<std::string> read_engine_hangs(std::string_view body) {
  Result<Json> json = parse_json(body, "/worker/info", {.bytes_max = 64 << 10});
  if (!json || !json->is_object()) return std::nullopt;
  Json error = json->value("error", Json());
  if (!error.is_object()) return std::nullopt;
  if (error.value("code", Json()) != Json(kEngineHangsCode)) return std::nullopt;
  Json message = error.value("message", Json());
  return message.is_string() ? message.get<std::string>() : std::string(kEngineHangsCode);
}

}  // namespace banyan
