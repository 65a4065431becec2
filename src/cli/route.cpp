// banyan route: one server for many workers.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <memory>
#include <thread>

#include "base/error.h"
#include "base/first_line.h"
#include "base/log.h"
#include "base/os/standard_error.h"
#include "cli/machine.h"
#include "cli/model_puller.h"
#include "cli/model_source.h"
#include "cli/options/checks.h"
#include "cli/options/engine_options.h"
#include "cli/options/model_options.h"
#include "cli/options/options.h"
#include "cli/options/server_options.h"
#include "cli/options/yaml_config.h"
#include "cli/verb.h"
#include "router/policy.h"
#include "server/server.h"
#include "server/status/memory_use.h"

namespace banyan::cli {
namespace {

struct RouteOptions : ServerOptions {
  EngineConfig model = serving_options().config;
  RouteConfig route;
  std::string worker_api_key_file;
};

Result<int> route(RouteOptions o) {
  TRY(o.settle());
  if (!o.worker_api_key_file.empty()) {
    o.route.worker_api_key = TRY(read_first_line("--worker-api-key-file", o.worker_api_key_file));
  }
  TRY(o.route.validate());
  std::signal(SIGPIPE, SIG_IGN);
  raise_descriptor_limit();
  warn_of_open_door(o.server);
  Server server(o.server);
  TRY(server.listen());
  server.use_workers(o.route);
  std::string workers = fmt::format("{} workers", o.route.worker_urls.size());
  if (o.route.etcd.used()) workers += fmt::format(" and those of etcd's {}", o.route.etcd.cluster);
  write_stderr(fmt::format("banyan: listening on {}, for {}\n", server.address(), workers));
  server.on_ready([&] { write_stderr(fmt::format("banyan: ready on {}\n", server.address())); });
  server.on_pull(pull_for_clients);
  std::jthread loader([&] {
    auto load = [&]() -> Result<std::unique_ptr<Llm>> {
      o.model.model_path = TRY(locate_model(o.model.model_path));
      return Llm::load_without_engine(o.model);
    };
    server.attach(load(), o.model);
  });
  TRY(server.run(true));
  return kExitSuccess;
}

void add_worker_options(CLI::App& app, RouteOptions& o) {
  RouteConfig& route = o.route;
  app.add_option(
         "--worker-urls", route.worker_urls,
         "Addresses of `banyan serve` processes, such as http://host:port; https:// uses TLS")
      ->default_str("")
      ->type_name("URL");
  add_etcd_options(app, route.etcd);
  std::vector<std::string> policies;
  for (const RoutingPolicy& policy : routing_policies()) policies.emplace_back(policy.name);
  app.add_option("--policy", route.policy, "How a worker is chosen")
      ->transform(one_of(std::move(policies)))
      ->type_name("NAME");
  app.add_option("--cache-threshold", route.costs.cache_threshold,
                 "cache_aware: follow a cached prefix if it is at least this share of the prompt")
      ->check(between(0.0, 1.0))
      ->type_name("X");
  app.add_option("--balance-abs-threshold", route.costs.balance_abs_threshold,
                 "cache_aware: balance load instead if the most and the fewest requests differ by "
                 "more than this ...")
      ->check(between(0, 1 << 30))
      ->type_name("N");
  app.add_option("--balance-rel-threshold", route.costs.balance_rel_threshold,
                 "... and by more than this factor")
      ->check(between(1.0, 1e6))
      ->type_name("X");
  app.add_option("--worker-api-key", route.worker_api_key, "The key that the workers require")
      ->default_str("")
      ->type_name("KEY");
  app.add_option("--worker-api-key-file", o.worker_api_key_file,
                 "File whose first line is that key, which keeps it out of `ps`")
      ->excludes("--worker-api-key")
      ->default_str("")
      ->type_name("FILE");
  OptionGroup group(app, "Workers");
  add_tls_options(app, route.tls, "workers");
  auto seconds = [&](const char* name, double& value, const char* text) {
    app.add_option(name, value, text)->check(between(0.001, 1e6))->type_name("S");
  };
  seconds("--health-check-interval-secs", route.health_interval_s,
          "Seconds between two questions to a worker");
  seconds("--health-check-timeout-secs", route.health_timeout_s,
          "A worker without an answer for so long is given up, and its streams move on");
  seconds("--worker-stall-timeout-secs", route.stall_timeout_s,
          "So is a worker that runs requests and takes no step for so long");
  app.add_option("--migration-limit", route.migrations_max,
                 "How often a request may lose its worker and continue on another")
      ->check(between(0, 1 << 20))
      ->type_name("N");
  app.add_option("--queue-size", route.queued_max,
                 "Maximum requests waiting for a worker; a client with less than its share of the "
                 "queue may still add to it")
      ->check(between(0, 1 << 30))
      ->type_name("N");
  seconds("--queue-timeout-secs", route.queue_timeout_s,
          "Maximum seconds that a request waits for a worker");
  app.add_option("--cb-failure-threshold", route.breaker_failures,
                 "Consecutive failures after which a worker that still answers gets no requests "
                 "for a while")
      ->check(between(1, 1 << 30))
      ->type_name("N");
  seconds("--cb-timeout-duration-secs", route.breaker_s, "For so many seconds");
}

VerbAction declare_route(CLI::App& app) {
  configure_allocator();
  write_stderr_in_background();
  auto o = std::make_shared<RouteOptions>();
  spdlog::set_level(spdlog::level::info);
  add_model_argument(app, o->model.model_path);
  add_log_level(app, "info");
  add_worker_options(app, *o);
  add_network_options(app, *o);
  add_default_options(app, o->server.defaults);
  add_message_options(app, *o);
  app.set_config("--config", "", "Options from a YAML file; those given here win")
      ->type_name("FILE");
  app.config_formatter(std::make_shared<YamlConfig>(app));
  app.allow_config_extras(CLI::config_extras_mode::error);
  return [o] { return route(*o); };
}

}  // namespace

const Verb kRouteVerb = {
    "route", "Serve a model whose engines are other processes",
    "  banyan serve models/Qwen3-0.6B --port 30001 --state-digest\n"
    "  banyan serve models/Qwen3-0.6B --port 30002 --state-digest\n"
    "  banyan route models/Qwen3-0.6B --worker-urls http://127.0.0.1:30001 "
    "http://127.0.0.1:30002\n"
    "\n"
    "Answers what `banyan serve` answers. Reads the model's tokenizer and template, not its\n"
    "weights. A stream whose worker dies goes on at another with the same tokens.\n"
    "Options have the names of SGLang's router.\n",
    declare_route};

}  // namespace banyan::cli
