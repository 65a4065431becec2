#include "cli/options/server_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "cli/options/checks.h"
#include "cli/options/options.h"
#include "server/chat.h"
#include "server/tracing/otel_environment.h"

namespace banyan::cli {
namespace {

// One key per line; empty lines are skipped.
Status read_api_keys(const char* option, const std::string& file, std::vector<std::string>& keys) {
  std::string text = TRY(read_file(file));
  for (size_t begin = 0; begin < text.size();) {
    size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, end - begin);
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty()) keys.push_back(std::move(line));
    begin = end + 1;
  }
  if (keys.empty()) return invalid_argument("{} {} contains no key", option, file);
  return {};
}

// vLLM takes origins as a JSON list, which has already been split at its commas.
Status unpack_json_list(const char* option, std::vector<std::string>& values) {
  if (values.empty() || !values.front().starts_with("[\"")) return {};
  Result<Json> list = parse_json(fmt::format("{}", fmt::join(values, ",")), option);
  bool texts = list && list->is_array() &&
               std::ranges::all_of(*list, [](const Json& value) { return value.is_string(); });
  if (!texts) return invalid_argument("{} takes a,b or [\"a\",\"b\"]", option);
  values = list->get<std::vector<std::string>>();
  return {};
}

Status settle_tracing(ServerOptions& o) {
  OtelEnvironment otel = TRY(OtelEnvironment::read([](const std::string& name) {
    const char* value = std::getenv(name.c_str());
    return std::string(value != nullptr ? value : "");
  }));
  std::string& endpoint = o.server.traces_endpoint;
  if (o.enable_trace && endpoint.empty()) endpoint = otel.endpoint;
  if (o.enable_trace && endpoint.empty()) endpoint = "http://localhost:4318/v1/traces";
  if (!otel.service_name.empty()) o.server.traces_service_name = otel.service_name;
  o.server.traces_headers = std::move(otel.headers);
  o.server.traces_gzip = otel.gzip;
  return {};
}

void add_limit_options(CLI::App& app, ServerConfig& server) {
  OptionGroup group(app, "Clients");
  app.add_option("--ssl-certfile,--ssl-cert-file", server.ssl.certificate,
                 "Serve https with this certificate, a PEM file")
      ->default_str("")
      ->type_name("FILE");
  app.add_option("--ssl-keyfile,--ssl-key-file", server.ssl.key,
                 "The certificate's key, a PEM file without a password")
      ->default_str("")
      ->type_name("FILE");
  app.add_option("--ssl-ca-certs", server.ssl.authorities,
                 "Certificate authorities that client certificates are verified against, a PEM "
                 "file; may be repeated")
      ->allow_extra_args(false)
      ->default_str("")
      ->type_name("FILE");
  app.add_option_function<int>(
         "--ssl-cert-reqs",
         [&server](int value) { server.ssl_clients = static_cast<ClientCertificate>(value); },
         "Certificates of clients: 0 are not asked for, 1 are checked, 2 are needed")
      ->check(between(0, 2))
      ->default_str("0")
      ->type_name("N");
  app.add_option("--max-connections", server.connections_max, "Maximum number of connected clients")
      ->type_name("N");
  app.add_option("--max-request-bytes", server.body_bytes_max, "Maximum size of a request in bytes")
      ->type_name("BYTES");
  app.add_option("--grammar-timeout", server.grammar_timeout_s,
                 "Maximum seconds a request waits for its grammar to be compiled")
      ->type_name("S");
  app.add_option("--max-stored-responses", server.responses_max,
                 "Maximum stored answers of /v1/responses; 0: none")
      ->type_name("N");
  app.add_option("--response-ttl", server.response_ttl_s, "Seconds to keep a stored answer")
      ->type_name("S");
  app.add_option("--drain-delay", server.drain_delay_s,
                 "Seconds after SIGTERM in which /health is a 503 and requests are still accepted, "
                 "for load balancers to notice")
      ->type_name("S");
  app.add_option("--drain-timeout", server.drain_timeout_s,
                 "Maximum seconds that running requests continue after SIGTERM")
      ->type_name("S");
}

// In `--served-model-name NAME MODEL` the last word is not a name: no other word is the model.
void give_model_its_word(CLI::App& app, std::vector<std::string>& names) {
  CLI::Option* model = app.get_option_no_throw("MODEL");
  const CLI::Option* other = app.get_option_no_throw("--model");
  if (model == nullptr || model->count() > 0 || names.size() < 2) return;
  if (other != nullptr && other->count() > 0) return;
  model->add_result(std::exchange(names.back(), {}));
  names.pop_back();
  model->run_callback();
}

void add_served_names(CLI::App& app, ServerConfig& server) {
  app.add_option_function<std::vector<std::string>>(
         "--served-model-name",
         [&app, &server](std::vector<std::string> names) {
           give_model_its_word(app, names);
           if (std::ranges::find(names, "") != names.end()) {
             throw CLI::ValidationError("--served-model-name", "a name is empty");
           }
           server.served_model_names = std::move(names);
         },
         "The only model names that clients may use; the first one is reported [the model's path; "
         "any name is accepted]")
      ->default_str("")
      ->type_name("NAME...");
}

}  // namespace

Status ServerOptions::settle() {
  server.bodies_bytes_max = std::max(server.bodies_bytes_max, server.body_bytes_max);
  TRY(unpack_json_list("--allowed-origins", server.allowed_origins));
  if (!api_key_file.empty()) TRY(read_api_keys("--api-key-file", api_key_file, server.api_keys));
  if (!metrics_api_key_file.empty()) {
    TRY(read_api_keys("--metrics-api-key-file", metrics_api_key_file, server.metrics_keys));
  }
  server.version = BANYAN_VERSION;
  TRY(settle_tracing(*this));
  return server.validate();
}

void warn_of_open_door(const ServerConfig& config) {
  if (config.on_loopback() || !config.api_keys.empty()) return;
  spdlog::warn(
      "--host {} accepts clients from other machines without a key; set --api-key to require one",
      config.host);
}

void add_network_options(CLI::App& app, ServerOptions& o) {
  ServerConfig& server = o.server;
  app.add_option("--host", server.host, "Address to listen on; 0.0.0.0 accepts other machines")
      ->type_name("ADDRESS");
  app.add_option("--port", server.port, "0: any free port, which is printed")
      ->check(between(0, 65535))
      ->type_name("N");
  app.add_option("--api-key", server.api_keys,
                 "Require this key, or one of these, from clients; may be "
                 "repeated")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->default_str("")
      ->type_name("KEY,...");
  add_served_names(app, server);
  OptionGroup group(app, "Clients");
  app.add_option("--alias,-a", server.aliases,
                 "Further names of the model in /v1/models; clients may still use any name")
      ->delimiter(',')
      ->default_str("")
      ->type_name("NAME");
  app.add_option("--tags", server.tags, "Words about the model for /v1/models")
      ->delimiter(',')
      ->default_str("")
      ->type_name("WORD");
  app.add_flag("--slots,!--no-slots", server.slots, "Answer /slots [yes]");
  app.add_flag("--verbose,-v", server.verbose, "Answers of chats show their prompts, in __verbose");
  app.add_flag("--json-flexible-whitespace", server.json_flexible_whitespace,
               "Constrained JSON may have spaces and line breaks between its parts");
  app.add_option("--tool-call-parser", server.tool_call_parser,
                 "Format of the model's tool calls, by SGLang's and vLLM's names; auto: detected "
                 "from the chat template; none")
      ->type_name("NAME");
  add_hidden_choice(app, "--reasoning-format", {"auto", "deepseek", "none"},  // of llama.cpp
                    [&server](const std::string& name) {
                      if (name == "none") server.reasoning_parser = "none";
                    });
  app.add_option("--reasoning-parser", server.reasoning_parser,
                 "Format of the model's reasoning, by the same rules")
      ->type_name("NAME");
  app.add_option("--api-key-file", o.api_key_file,
                 "File with one key per line, which keeps the keys out of `ps`")
      ->default_str("")
      ->type_name("FILE");
  app.add_option("--metrics-api-key-file", o.metrics_api_key_file,
                 "File with keys that are valid for /metrics only, one per line")
      ->default_str("")
      ->type_name("FILE");
  app.add_option("--allowed-hosts", server.allowed_hosts,
                 "Host names that the server answers to, in addition to its own, such as a.example "
                 "or .example; *: all [all if --host is not a loopback address]")
      ->delimiter(',')
      ->default_str("")
      ->type_name("NAME");
  app.add_option("--allowed-origins,--cors-allow-origins", server.allowed_origins,
                 "Web pages that may use the server, such as https://host; *: all [those of this "
                 "machine, on a loopback address]")
      ->delimiter(',')
      ->default_str("")
      ->type_name("ORIGIN");
  app.add_flag("--webui,!--no-webui", server.webui, "The page for browsers at /; --no-webui: none");
  add_limit_options(app, server);
}

void add_tls_options(CLI::App& app, TlsFiles& files, const std::string& peer) {
  app.add_option(std::string(files.authorities_option), files.authorities,
                 "Certificate authorities to verify the certificate of " + peer +
                     " at https:// addresses, a PEM file; may be repeated [those that this machine "
                     "trusts]")
      ->allow_extra_args(false)
      ->default_str("")
      ->type_name("FILE");
  app.add_option(std::string(files.certificate_option), files.certificate,
                 "Client certificate for connections to " + peer + ", a PEM file")
      ->default_str("")
      ->type_name("FILE");
  app.add_option(std::string(files.key_option), files.key,
                 "The certificate's key, a PEM file without a password")
      ->default_str("")
      ->type_name("FILE");
}

void add_etcd_options(CLI::App& app, EtcdConfig& etcd) {
  app.add_option("--etcd-endpoints", etcd.endpoints,
                 "Addresses of etcd, through which routers find workers, such as http://host:2379")
      ->delimiter(',')
      ->default_str("")
      ->type_name("URL");
  app.add_option("--etcd-cluster", etcd.cluster,
                 "Workers and routers with the same name find each other")
      ->type_name("NAME");
  app.add_option("--etcd-user", etcd.login.user, "User of an etcd with authentication")
      ->default_str("")
      ->type_name("NAME");
  app.add_option("--etcd-password-file", etcd.login.password_file,
                 "Read the user's password from the first line of this file")
      ->default_str("")
      ->type_name("FILE");
  add_tls_options(app, etcd.tls, "etcd");
}

void add_default_options(CLI::App& app, RequestDefaults& defaults) {
  OptionGroup group(app, "Defaults of requests");
  constexpr const char* kModels = " [the model's]";
  auto number = [&](const char* names, auto& value, const char* text, auto min, auto max) {
    app.add_option(names, value, std::string(text) + kModels)
        ->check(between(min, max))
        ->type_name("N");
  };
  number("--temperature,--temp", defaults.temperature, "0 takes the likeliest token", 0.0, 100.0);
  number("--top-p", defaults.top_p, "Draw from the likeliest tokens that make up N", 1e-6, 1.0);
  number("--top-k", defaults.top_k, "Draw from the N likeliest tokens; 0: all", 0, 1 << 30);
  number("--min-p", defaults.min_p, "Draw from tokens at least N times as likely as the best", 0.0,
         1.0);
  number("--repetition-penalty,--repeat-penalty", defaults.repetition_penalty,
         "Divide the logits of tokens seen", 0.01, 100.0);
  number("--repeat-last-n", defaults.repeat_last_n,
         "Last tokens that penalties count; -1: all, 0: none", -1, 1 << 30);
  number("--presence-penalty", defaults.presence_penalty, "Lower tokens that appeared", -2.0, 2.0);
  number("--frequency-penalty", defaults.frequency_penalty,
         "Lower tokens by each time they appeared", -2.0, 2.0);
  add_seed_option(app, defaults.seed, "Seed of requests that set none [random]");
  app.add_option("--max-tokens,-n,--n-predict,--predict", defaults.max_new_tokens,
                 "Maximum tokens of an answer that sets no limit; -1: what the context holds "
                 "[depends on the API]")
      ->check(count_or_rest())
      ->type_name("N");
  app.add_option("--reasoning-budget", defaults.thinking_tokens_max,
                 "Maximum reasoning tokens of a chat; -1: no limit [-1]")
      ->check(between(int64_t{-1}, int64_t{1} << 31))
      ->type_name("N");
  app.add_option_function<std::string>(
         "--reasoning",
         [&defaults](const std::string& word) {
           if (word == "auto") return;
           set_thinking(defaults.template_variables, word == "on");
         },
         "Whether chats think, where the template asks")
      ->transform(one_of({"auto", "on", "off"}))
      ->default_str("auto")
      ->type_name("WORD");
  app.add_option_function<std::string>(
         "--default-chat-template-kwargs,--chat-template-kwargs",
         [&defaults](const std::string& text) {
           Result<Json> json = parse_json(text, "--chat-template-kwargs");
           if (!json || !json->is_object()) {
             throw CLI::ValidationError("--chat-template-kwargs", "takes an object of JSON");
           }
           defaults.template_variables.update(*json);
         },
         "Variables of the chat template, as an object of JSON")
      ->default_str("")
      ->type_name("JSON");
}

void add_message_options(CLI::App& app, ServerOptions& o) {
  OptionGroup group(app, "Messages");
  app.add_option("--otlp-traces-endpoint", o.server.traces_endpoint,
                 "Send spans of requests to this OpenTelemetry collector, such as "
                 "http://localhost:4318/v1/traces")
      ->default_str("")
      ->type_name("URL");
  app.add_flag("--enable-trace", o.enable_trace,
               "The same, to the collector in OTEL_EXPORTER_OTLP_ENDPOINT, or on localhost");
  app.add_flag("--log-requests,--enable-log-requests", o.server.log_requests,
               "Log each request's parameters and timings");
}

}  // namespace banyan::cli
