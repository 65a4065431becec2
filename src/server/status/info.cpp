#include "server/status/info.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>

#include "base/json.h"
#include "engine/assemble.h"
#include "llm/engine_thread.h"
#include "server/error.h"
#include "server/timestamp.h"

namespace banyan {
namespace {

constexpr std::string_view kPrometheusText = "text/plain; version=0.0.4; charset=utf-8";

int64_t seconds_since_epoch(std::chrono::system_clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
}

// OpenAI's model object, with the members that Anthropic clients read.
Json model_json(const Service& service) {
  return {{"id", service.model_name()},
          {"object", "model"},
          {"type", "model"},
          {"display_name", service.model_name()},
          {"created_at", rfc3339(service.started_at())},
          {"lifecycle", "active"},
          {"max_input_tokens", service.engine_info().context_length_tokens},
          {"created", seconds_since_epoch(service.started_at())},
          {"owned_by", "banyan"},
          {"root", service.engine_config().model_path},
          {"parent", nullptr},
          {"aliases", service.config().aliases},
          {"tags", service.config().tags},
          {"max_model_len", service.engine_info().context_length_tokens}};
}

// vLLM's: a model of its own, whose parent is the one that is served.
Json adapter_json(const Service& service, const AdapterInfo& adapter) {
  Json json = model_json(service);
  json["id"] = json["display_name"] = adapter.name;
  json["root"] = adapter.path;
  json["parent"] = service.model_name();
  json["aliases"] = json["tags"] = Json::array();
  return json;
}

// Null unless requested, since computing it reads all weights.
Json digest_json(const EngineInfo& info) {
  return info.state_digest.empty() ? Json() : Json(info.state_digest);
}

Json drafters_json(const EngineStats& stats) {
  Json all = Json::array();
  for (const DrafterStats& drafter : stats.drafters) {
    if (drafter.name.empty()) continue;
    all.push_back({{"name", drafter.name},
                   {"drafts", drafter.drafts},
                   {"draft_tokens", drafter.draft_tokens},
                   {"accepted_tokens", drafter.accepted_tokens},
                   {"branches", drafter.branches},
                   {"followed_branches", drafter.followed_branches},
                   {"time_s", drafter.time_s}});
  }
  return all;
}

Json state_json(const Service& service) {
  const EngineStats& stats = service.engine_stats();
  double accept_length =
      1 + static_cast<double>(stats.accepted_draft_tokens) / std::max<int64_t>(1, stats.drafts);
  return {{"num_running_reqs", stats.running},
          {"num_queue_reqs", stats.queued},
          {"pages_free", stats.pages_free},
          {"pages_cached", stats.pages_cached},
          {"pages_total", stats.pages_total},
          {"slots_cached", stats.slots_cached},
          {"slots_total", stats.slots_total},
          {"steps", stats.steps},
          {"prompt_tokens", stats.prompt_tokens},
          {"cached_tokens", stats.cached_tokens},
          {"generated_tokens", stats.generated_tokens},
          {"num_retracted_reqs", stats.retracted},
          {"max_total_num_tokens", service.engine_info().total_tokens_max},
          {"avg_spec_accept_length", accept_length},
          {"drafters", drafters_json(stats)}};
}

Json layer_json(const EngineInfo& info, const CacheLayerStats& layer) {
  Json classes = Json::array();
  for (size_t c = 0; c < info.state_classes.size(); ++c) {
    classes.push_back({{"kind", info.state_classes[c].name},
                       {"units", layer.units[c]},
                       {"bytes", layer.bytes[c]}});
  }
  return {{"backend", layer.backend},
          {"state", layer.health},
          {"classes", classes},
          {"capacity_bytes", layer.capacity_bytes},
          {"evicted_units", layer.evicted_units},
          {"restored_tokens", layer.restored_tokens},
          {"read_bytes", layer.read_bytes},
          {"written_bytes", layer.written_bytes},
          {"read_s", layer.read_s},
          {"write_s", layer.write_s}};
}

// Null without a store.
Json storage_json(const EngineInfo& info, const CacheStorageStats& s) {
  if (s.layer_count == 0) return {};
  Json layers = Json::array(), misses = Json::object();
  for (size_t i = 0; i < s.layer_count; ++i) layers.push_back(layer_json(info, s.layers[i]));
  for (size_t i = 0; i < s.misses.size(); ++i) {
    misses[std::string(CacheStorageStats::kMissNames[i])] = s.misses[i];
  }
  return {{"layers", layers},
          {"evicted_unwritten", s.evicted_unwritten},
          {"restored_tokens", s.restored_tokens},
          {"saved_s", s.saved_s},
          {"misses", misses}};
}

// Null before the first decode step that may have drafts.
Json speculation_json(const SpeculationStats& stats) {
  if (stats.plain_s[0] == 0) return nullptr;
  return {{"predicted_gain", stats.predicted_gain}, {"measured_gain", stats.measured_gain},
          {"trial_steps", stats.trial_steps},       {"paused_steps", stats.paused_steps},
          {"unpaid_steps", stats.unpaid_steps},     {"step_s_by_sequences", stats.plain_s},
          {"step_s_by_rows", stats.drafted_s}};
}

// As --speculative-algorithm is given; null: nothing but what grammars force.
Json algorithm_json(const EngineConfig& config) {
  if (config.drafters.empty()) return config.draft_model_path.empty() ? Json() : Json("draft");
  return fmt::format("{}", fmt::join(config.drafters, ","));
}

Json path_json(const EngineConfig& config) {
  return config.draft_model_path.empty() ? Json() : Json(config.draft_model_path);
}

Json server_json(const Service& service, const SpeculationStats& speculation) {
  const EngineConfig& engine = service.engine_config();
  const ServerConfig& config = service.config();
  const EngineInfo& info = service.engine_info();
  return {{"model_path", engine.model_path},
          {"served_model_name", service.model_name()},
          {"host", config.host},
          {"dtype", engine.dtype},
          {"kv_cache_dtype", info.kv_cache_dtype},
          {"kernels", info.kernels},
          {"kernels_reason", info.kernels_reason},
          {"threads", info.threads},
          {"tp_size", info.tp_size},
          {"context_length", info.context_length_tokens},
          {"page_size", info.page_size_tokens},
          {"max_total_num_tokens", info.total_tokens_max},
          {"max_running_requests", engine.running_max},
          {"max_queued_requests", engine.queued_max},
          {"chunked_prefill_size", engine.prefill_tokens()},
          {"prefill_step_ms", engine.prefill_step_ms},
          {"schedule_policy", engine.schedule_policy},
          {"disable_radix_cache", !engine.radix_cache},
          {"enable_hierarchical_cache", engine.cache_storage.on()},
          {"hicache_storage_backend", engine.cache_storage.backend},
          {"hicache_write_policy", engine.cache_storage.write_policy},
          {"hicache_storage_prefetch_policy", engine.cache_storage.prefetch_policy},
          {"disaggregation_mode", config.disaggregation_mode},
          {"disable_jump_forward", !engine.jump_forward},
          {"speculative_algorithm", algorithm_json(engine)},
          {"speculative_draft_model_path", path_json(engine)},
          {"speculative_num_draft_tokens", engine.draft_tokens_max},
          {"speculative_eagle_topk", engine.draft_topk},
          {"disable_overlap_schedule", !info.overlap_schedule},
          {"num_scheduler_steps", engine.scheduler_steps},
          {"draw_revision", kDrawRevision},
          {"version", config.version},
          {"state_digest", digest_json(info)},
          {"hicache_storage", storage_json(info, service.engine_stats().storage)},
          {"speculation", speculation_json(speculation)},
          {"internal_states", Json::array({state_json(service)})}};
}

// For /health_generate. A full queue is healthy if the engine's thread still makes steps: the
// answer waits until it has ended the current one.
void respond_rejected(Service& service, const Error& error, const ResponderPtr& responder) {
  if (error.code != ErrorCode::kExhausted) return responder->respond_error(503, error.message);
  auto respond = [responder] { responder->respond(200, Json{{"status", "ok"}}); };
  if (service.engine() == nullptr) return respond();
  service.engine()->run([](Engine&) {}, respond);
}

}  // namespace

void respond_unready(const Service& service, Responder& responder) {
  bool loading = service.state() == Service::State::kLoading;
  std::string_view message = loading ? "Loading model" : "The server is shutting down";
  responder.respond(
      503, Json{{"error", {{"code", 503}, {"message", message}, {"type", "unavailable_error"}}}},
      {{"Retry-After", "1"}});
}

void health(Service& service, HttpRequest, ResponderPtr responder) {
  if (service.state() != Service::State::kReady || service.leaving()) {
    return respond_unready(service, *responder);
  }
  Status ready = service.generator().ready();
  if (!ready) return responder->respond_error(503, ready.error().message);
  responder->respond(200, Json{{"status", "ok"}});
}

void health_generate(Service& service, HttpRequest request, ResponderPtr responder) {
  Status ready = service.generator().ready();
  if (!ready) return responder->respond_error(503, ready.error().message);
  SubmissionSinks sinks;
  sinks.event = [responder](size_t, const TokenEvent& event) {
    if (event.finish == FinishReason::kNone) return;
    bool well = event.finish == FinishReason::kLength || event.finish == FinishReason::kStop;
    if (well) return responder->respond(200, Json{{"status", "ok"}});
    responder->respond_error(
        503, event.error.message.empty() ? to_string(event.finish) : event.error.message);
  };
  sinks.rejected = [&service, responder](const Error& error) {
    respond_rejected(service, error, responder);
  };
  std::vector<GenerateRequest> requests(1);
  requests[0].prompt = {0};
  requests[0].options.max_new_tokens = service.engine_info().generates ? 1 : 0;
  requests[0].sampling.temperature = 0;
  auto submission = service.submit(request.id, std::move(requests), std::move(sinks));
  if (!submission) return respond_rejected(service, submission.error(), responder);
  responder->on_disconnect([&service, submission = *submission] {
    service.abandon(submission, FinishReason::kCancelled);
  });
}

void metrics(Service& service, HttpRequest, ResponderPtr responder) {
  Metrics::Others others = {.experts = service.expert_counts(),
                            .grammars_waiting = service.grammars_waiting(),
                            .memory = service.memory_use(),
                            .spans = service.span_counts()};
  if (service.state() != Service::State::kLoading) {
    others.grammars = service.llm().grammar_stats();
    others.generator = service.generator().figures();
    others.adapters_max = service.engine_info().adapters_max;
    others.adapters = service.adapters();
  }
  auto started = seconds_since_epoch(service.started_at());
  responder->respond(200, service.metrics().text(others), kPrometheusText,
                     {{"Process-Start-Time-Unix", std::to_string(started)}});
}

void list_models(Service& service, HttpRequest, ResponderPtr responder) {
  Json models = Json::array({model_json(service)});
  for (const AdapterInfo& adapter : service.adapters()) {
    models.push_back(adapter_json(service, adapter));
  }
  std::string last = models.back()["id"];
  responder->respond(200, Json{{"object", "list"},
                               {"data", std::move(models)},
                               {"has_more", false},
                               {"first_id", service.model_name()},
                               {"last_id", std::move(last)}});
}

void show_model(Service& service, HttpRequest request, ResponderPtr responder) {
  const std::vector<std::string>& names = service.config().served_model_names;
  if (request.path_argument == service.model_name() ||
      std::ranges::find(names, request.path_argument) != names.end()) {
    return responder->respond(200, model_json(service));
  }
  for (const AdapterInfo& adapter : service.adapters()) {
    if (adapter.name != request.path_argument) continue;
    return responder->respond(200, adapter_json(service, adapter));
  }
  responder->respond_error(
      404,
      "there is no model " + request.path_argument + "; this server has " + service.model_name(),
      "model", "model_not_found");
}

void model_info(Service& service, HttpRequest, ResponderPtr responder) {
  const EngineConfig& config = service.engine_config();
  responder->respond(200, Json{{"model_path", config.model_path},
                               {"tokenizer_path", config.model_path},
                               {"is_generation", !service.llm().is_embedding_model()},
                               {"preferred_sampling_params", nullptr},
                               {"weight_version", "default"},
                               {"has_image_understanding", false},
                               {"has_audio_understanding", false},
                               {"architectures", Json::array({service.engine_info().architecture})},
                               {"max_model_len", service.engine_info().context_length_tokens},
                               {"vocab_size", service.engine_info().vocabulary}});
}

// What drafting has measured belongs to the engine's thread.
void server_info(Service& service, HttpRequest, ResponderPtr responder) {
  auto stats = std::make_shared<SpeculationStats>();
  auto answer = [&service, stats, responder] {
    responder->respond(200, server_json(service, *stats));
  };
  if (service.engine() == nullptr || service.engine_config().emulated_steps) return answer();
  service.engine()->run([stats](Engine& engine) { *stats = EngineAssembly::speculation(engine); },
                        answer);
}

void flush_cache(Service& service, HttpRequest, ResponderPtr responder) {
  service.engine()->run([](Engine& engine) { engine.flush_cache(); },
                        [responder] { responder->respond(200, "Cache flushed.\n", "text/plain"); });
}

void clear_cache_storage(Service& service, HttpRequest, ResponderPtr responder) {
  if (!service.engine_config().cache_storage.on()) {
    return responder->respond_error(
        400, "nothing is cached beyond memory; --hicache-storage-backend says where it may be");
  }
  service.engine()->run([](Engine& engine) { engine.clear_cache_storage(); },
                        [responder] {
                          responder->respond(200, "Hierarchical cache storage backend cleared.\n",
                                             "text/plain");
                        });
}

}  // namespace banyan
