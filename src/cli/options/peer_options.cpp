#include "cli/options/peer_options.h"

#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

namespace banyan::cli {
namespace {

struct Explained {
  const char* names;
  const char* why;
};

// Flags for what Banyan always does, or for something it does not have.
constexpr std::array kAlways = std::to_array<Explained>({
    {"--trust-remote-code", "code in a model folder is never run"},
    {"--enable-metrics,--metrics", "metrics are always on"},
    {"--enable-cache-report,--enable-prompt-tokens-details", "cached tokens are always reported"},
    {"--enable-mixed-chunk,--enable-chunked-prefill", "prefill and decode always share steps"},
    {"--cont-batching", "batching is always continuous"},
    {"--enable-prefix-caching,--cache-prompt", "prefixes are cached unless --disable-radix-cache"},
    {"--enable-deterministic-inference", "results never depend on the batch"},
    {"--skip-server-warmup,--no-warmup", "there is no warm-up"},
    {"--jinja", "chat templates are always Jinja"},
    {"--constrained-json-disable-any-whitespace",
     "constrained JSON is compact unless --json-flexible-whitespace"},
    {"--enable-auto-tool-choice", "tools may be called unless tool_choice is none"},
    {"--disable-log-stats", "there is nothing to switch off"},
});

// One machine, one copy of the model: only 1 is supported.
constexpr std::array kOnlyOne = std::to_array<const char*>({
    "--tp-size,--tp,--tensor-parallel-size",
    "--dp-size,--dp,--data-parallel-size",
    "--pp-size,--pp,--pipeline-parallel-size",
    "--ep-size,--ep,--expert-parallel-size",
    "--nnodes",
});

constexpr std::array kRefused = std::to_array<const char*>({
    "--tokenizer-path,--tokenizer",
    "--download-dir",
    "--json-model-override-args,--hf-overrides",
    "--n-gpu-layers,--gpu-layers",
    "--cpu-offload-gb",
    "--max-prefill-tokens",
    "--prefill-max-requests",
    "--schedule-conservativeness",
    "--radix-eviction-policy",
    "--kv-transfer-config,--kv-offloading-size",
    "--slot-save-path",
    "--context-shift",
    "--enable-dp-attention,--moe-a2a-backend,--enable-eplb",
    "--speculative-draft-model-revision",
    "--speculative-num-steps,--speculative-token-map",
    "--speculative-accept-threshold-single,--speculative-accept-threshold-acc",
    "--spec-draft-p-min,--draft-p-min,--draft-p-split,--lookup-cache-static,--lookup-cache-dynamic",
    "--disaggregation-mode,--disaggregation-transfer-backend,--disaggregation-bootstrap-port",
    "--constrained-json-whitespace-pattern,--structured-outputs-config",
    "--reasoning-format,--reasoning-budget-message",
    "--chat-template,--chat-template-file",
    "--enable-lora,--lora-paths,--lora-modules,--lora,--max-loras-per-batch,--max-lora-rank",
    "--admin-api-key",
    "--ssl-keyfile-password,--ssl-ciphers,--enable-ssl-refresh",
    "--is-embedding,--embedding,--embeddings,--reranking,--runner",
    "--random-seed",
    "--stream-interval",
    "--crash-dump-folder",
    "--watchdog-timeout",
});

// Flags that have a replacement here.
constexpr std::array kReplaced = std::to_array<Explained>({
    {"--cache-type-k,--cache-type-v",
     "keys and values are kept alike here: --kv-cache-dtype int8 or fp8_e4m3 halves their memory"},
});

constexpr std::array kShortNames = std::to_array<std::pair<std::string_view, const char*>>({
    {"-np", "--parallel"},
    {"-tp", "--tp-size"},
    {"-pp", "--pp-size"},
    {"-dp", "--dp-size"},
    {"-cb", "--cont-batching"},
    {"-hf", "--model"},
    {"-hfr", "--model"},
    {"-hff", "--hf-file"},
    {"-ngl", "--n-gpu-layers"},
    {"-ctk", "--cache-type-k"},
    {"-ctv", "--cache-type-v"},
    {"-md", "--model-draft"},
});

[[noreturn]] void refuse(const std::string& names, const std::string& why) {
  throw CLI::ValidationError(names.substr(0, names.find(',')), why);
}

}  // namespace

void add_peer_options(CLI::App& app) {
  app.add_flag_callback(
         "--enforce-eager,--disable-cuda-graph",
         // Which queues of a card read when they open.
         [] { ::setenv("BANYAN_CUDA_GRAPHS", "0", /*overwrite=*/1); }, "")
      ->group("");
  for (const Explained& option : kAlways) {
    app.add_flag_callback(
           option.names,
           [option] { spdlog::info("{} has no effect: {}", option.names, option.why); }, "")
        ->group("");
  }
  app.add_option_function<std::vector<std::string>>(
         "--precompile-token-paddings,--precompile-bs-paddings",
         [](const std::vector<std::string>&) {
           spdlog::info("--precompile-token-paddings has no effect: no shapes are compiled");
         },
         "")
      ->default_str("")
      ->group("");
  for (const char* names : kOnlyOne) {
    app.add_option_function<std::string>(
           names,
           [names](const std::string& value) {
             if (value != "1")
               refuse(names,
                      value +
                          " needs several ranks, which are not supported yet; only 1 is supported");
           },
           "")
        ->group("");
  }
  app.add_option_function<std::string>(
         "--grammar-backend,--guided-decoding-backend",
         [](const std::string& name) {
           if (name == "none") refuse("--grammar-backend", "none: grammars cannot be switched off");
           spdlog::info("--grammar-backend {} has no effect: Banyan has its own grammar backend",
                        name);
         },
         "")
      ->group("");
  for (const Explained& option : kReplaced) {
    app.add_option_function<std::string>(
           option.names, [option](const std::string&) { refuse(option.names, option.why); }, "")
        ->expected(0, 1)
        ->default_str("")
        ->group("");
  }
  for (const char* names : kRefused) {
    app.add_option_function<std::string>(
           names, [names](const std::string&) { refuse(names, "is not supported yet"); }, "")
        ->expected(0, 1)
        ->default_str("")
        ->group("");
  }
}

std::string respell_peer_option(const std::string& word) {
  for (auto [short_name, name] : kShortNames) {
    if (word == short_name) return name;
  }
  return word;
}

}  // namespace banyan::cli
