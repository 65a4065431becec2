// banyan serve: the HTTP server.
#include "base/log.h"
#include "server/server.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <memory>
#include <thread>

#include "base/error.h"
#include "base/os/standard_error.h"
#include "cli/machine.h"
#include "cli/model_puller.h"
#include "cli/model_source.h"
#include "cli/options/adapter_options.h"
#include "cli/options/checks.h"
#include "cli/options/disaggregation_options.h"
#include "cli/options/engine_options.h"
#include "cli/options/model_options.h"
#include "cli/options/options.h"
#include "cli/options/peer_options.h"
#include "cli/options/server_options.h"
#include "cli/options/yaml_config.h"
#include "cli/verb.h"
#include "server/status/memory_use.h"

namespace banyan::cli {
namespace {

struct ServeOptions : ServerOptions {
  EngineOptions engine = serving_options();
  AdapterOptions adapters;
  DisaggregationOptions disaggregation;
  std::string kv_events_config;  // JSON
};

Result<int> serve(ServeOptions o) {
  TRY(o.engine.settle());
  TRY(o.disaggregation.settle(o.engine.config));
  o.server.disaggregation_mode = o.disaggregation.mode;
  o.adapters.settle(o.engine.config);
  o.server.defaults.adapter = o.adapters.of_all;
  o.server.runtime_adapters = o.adapters.runtime;
  if (o.disaggregation.mode != "null" && o.engine.config.adapters_max > 0) {
    return unsupported("--disaggregation-mode {} is not supported with LoRA adapters yet",
                       o.disaggregation.mode);
  }
  if (!o.kv_events_config.empty()) {
    o.server.kv_publish = TRY(KvPublishConfig::parse(o.kv_events_config));
    if (o.server.kv_publish.enabled) o.engine.config.state_digest = true;  // names pages
  }
  TRY(o.settle());
  std::signal(SIGPIPE, SIG_IGN);
  raise_descriptor_limit();
  warn_of_open_door(o.server);
  Server server(o.server);
  TRY(server.listen());
  write_stderr(fmt::format("banyan: listening on {}, loading {}\n", server.address(),
                           o.engine.config.model_path));
  server.on_ready([&] { write_stderr(fmt::format("banyan: ready on {}\n", server.address())); });
  server.on_pull(pull_for_clients);
  std::jthread loader([&] {
    const EngineConfig& config = o.engine.config;
    server.attach(load_llm(config, o.disaggregation.storage(o.server)), config);
  });
  TRY(server.run(true));
  return kExitSuccess;
}

void add_log_options(CLI::App& app, ServeOptions& o) {
  OptionGroup group(app, "Messages");
  app.add_flag("--expert-counts", o.engine.config.expert_counts,
               "Report in /metrics how often each expert of each layer was chosen");
  app.add_flag("--state-digest", o.engine.config.state_digest,
               "Hash the weights while loading and report the state digest in /server_info");
  app.add_option("--kv-events-config", o.kv_events_config,
                 "Publish events of the prefix cache over ZeroMQ for other routers, with vLLM's "
                 "settings: {\"enable_kv_cache_events\": true, \"endpoint\": \"tcp://*:5557\"}. "
                 "Anyone who connects there can read prompts. Implies --state-digest")
      ->default_str("")
      ->type_name("JSON");
  app.add_option("--decode-log-interval", o.server.decode_log_interval,
                 "Decode steps between two log lines; 0: none")
      ->check(between(0, 1 << 30))
      ->type_name("N");
}

void add_watchdog_option(CLI::App& app, ServerConfig& server) {
  OptionGroup group(app, "Clients");
  app.add_option("--watchdog-timeout", server.watchdog_timeout_s,
                 "Seconds without a step, though there are requests, after which /health is a 503; "
                 "0: never")
      ->check(between(0.0, 86400.0))
      ->type_name("S");
}

void add_router_options(CLI::App& app, EtcdConfig& etcd) {
  OptionGroup group(app, "Routers");
  add_etcd_options(app, etcd);
  app.add_option("--etcd-advertise-url", etcd.advertise_url,
                 "Address at which routers reach this server [its own address]")
      ->default_str("")
      ->type_name("URL");
  app.add_option("--etcd-ttl", etcd.ttl_s,
                 "Maximum seconds that a server stays listed after its end")
      ->check(between(int64_t{2}, int64_t{3600}))
      ->type_name("S");
}

VerbAction declare_serve(CLI::App& app) {
  configure_allocator();
  write_stderr_in_background();  // parsing options also logs
  auto o = std::make_shared<ServeOptions>();
  spdlog::set_level(spdlog::level::info);
  add_model_options(app, o->engine.config, {.log_level = "info"});
  add_adapter_options(app, o->engine.config, o->adapters, true);
  add_network_options(app, *o);
  add_default_options(app, o->server.defaults);
  add_engine_options(app, o->engine);
  add_watchdog_option(app, o->server);
  add_log_options(app, *o);
  add_message_options(app, *o);
  add_router_options(app, o->server.etcd);
  add_disaggregation_options(app, o->disaggregation);
  add_peer_options(app);
  app.set_config("--config", "", "Options from a YAML file; those given here win")
      ->type_name("FILE");
  app.config_formatter(std::make_shared<YamlConfig>(app));
  app.allow_config_extras(CLI::config_extras_mode::error);
  return [o] { return serve(*o); };
}

}  // namespace

const Verb kServeVerb = {
    "serve", "Serve a model over HTTP",
    "  banyan serve models/Qwen3-0.6B\n"
    "  banyan serve models/banyan-nano --port 8000 --api-key secret\n"
    "  banyan serve models/Qwen3-0.6B --lora-paths sql=adapters/sql\n"
    "  curl http://127.0.0.1:30000/v1/completions -d '{\"prompt\": \"Once\", \"max_tokens\": 9}'\n"
    "\n"
    "Options have SGLang's names; vLLM's and llama-server's names for the same are understood.\n"
    "GET /health is 200 once the model is loaded. SIGTERM lets running requests finish.\n",
    declare_serve, respell_peer_option};

}  // namespace banyan::cli
