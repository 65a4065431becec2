#include "cli/options/peer_options.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "base/json.h"
#include "base/log.h"
#include "cli/options/checks.h"

namespace banyan::cli {
namespace {

struct Explained {
  const char* names;
  const char* why;
  bool number = false;  // what its value must be
};

// Flags for what Banyan always does, or for something it does not have.
constexpr std::array kAlways = std::to_array<Explained>({
    {"--trust-remote-code", "code in a model folder is never run"},
    {"--enable-metrics,--metrics", "metrics are always on"},
    {"--enable-cache-report,--enable-prompt-tokens-details", "cached tokens are always reported"},
    {"--enable-mixed-chunk,--enable-chunked-prefill", "prefill and decode always share steps"},
    {"--cont-batching,--no-cont-batching",
     "batching is always continuous, and results never depend on it"},
    {"--enable-prefix-caching,--cache-prompt", "prefixes are cached unless --disable-radix-cache"},
    {"--enable-deterministic-inference", "results never depend on the batch"},
    {"--skip-server-warmup,--no-warmup", "there is no warm-up"},
    {"--jinja", "chat templates are always Jinja"},
    {"--enable-ssl-refresh", "renewed certificates are always used"},
    {"--constrained-json-disable-any-whitespace",
     "constrained JSON is compact unless --json-flexible-whitespace"},
    {"--enable-auto-tool-choice", "tools may be called unless tool_choice is none"},
    {"--disable-log-stats", "there is nothing to switch off"},
    {"--disable-log-requests", "requests are logged only with --log-requests"},
    {"--no-context-shift", "a context is never shifted"},
    {"--no-mmap", "weights are always read into memory"},
    {"--swa-full", "windows are cached as far as they can be used again"},
    {"--reranking,--rerank", "documents are always ranked on request"},
    {"--enable-torch-compile", "kernels are compiled ahead of time"},
});

constexpr std::string_view kFlashAttention = "--flash-attn";  // whose value may be missing
// Options with a value that tunes or chooses what Banyan does in its own way. No result depends on
// them.
constexpr std::array kOwnWay = std::to_array<Explained>({
    {kFlashAttention.data(), "attention never stores its scores"},
    {"--attention-backend,--prefill-attention-backend,--decode-attention-backend",
     "Banyan has its own kernels"},
    {"--sampling-backend,--moe-runner-backend,--fp8-gemm-backend", "Banyan has its own kernels"},
    {"--compilation-config", "kernels are compiled ahead of time"},
    {"--cuda-graph-max-bs,--max-seq-len-to-capture,--torch-compile-max-bs",
     "steps that repeat become CUDA graphs, whatever their size", true},
    {"--swap-space", "a request that makes way finds its prefix in the cache, or computes it again",
     true},
    {"--uvicorn-log-level,--log-level-http", "--log-level is of all messages"},
    {"--threads-batch", "--threads is for prompts, too", true},
    {"--threads-http", "the server chooses how many it has", true},
    {"--cache-reuse", "prefixes are reused to the token; what follows a change is computed", true},
    {"--split-mode", "one GPU is used"},
    {"--speculative-num-steps",
     "drafts are as long as measured step times allow, up to --speculative-num-draft-tokens", true},
    {"--disaggregation-transfer-backend", "states of prompts travel over HTTP"},
    {"--disaggregation-bootstrap-port", "states of prompts travel over the server's own port",
     true},
    {"--batch-size,--ubatch-size", "the engine cuts prompts itself", true},
    {"--cache-ram", "the cache of prefixes has the memory that --mem-fraction-static gives it",
     true},
    {"--ctx-checkpoints,--swa-checkpoints", "states are kept as far as they can be used again",
     true},
    {"--slot-prompt-similarity", "there are no slots to choose", true},
    {"--max-loras-per-batch,--max-loras", "a step may have any of the loaded adapters", true},
    {"--lora-backend,--lora-dtype,--lora-eviction-policy",
     "adapters are kept in the type of the model's weights until they are unloaded"},
});

// Options with several values, for which the same is true.
constexpr std::array kLists = std::to_array<Explained>({
    {"--precompile-token-paddings", "no shapes are compiled"},
    {"--precompile-bs-paddings", "no shapes are compiled"},
    {"--cuda-graph-bs", "no shapes are compiled"},
    {"--lora-target-modules", "there is room for every module that can be adapted"},
});

// Options of which some values mean what Banyan does anyway. The others are refused.
struct Neutral {
  const char* names;
  const char* values;  // separated by |
  const char* instead = "";
};
constexpr const char* kRanks = "--tp-size divides the model among ranks";
constexpr std::array kNeutral = std::to_array<Neutral>({
    {"--dp-size,--dp,--data-parallel-size", "1", kRanks},
    {"--pp-size,--pp,--pipeline-parallel-size", "1", kRanks},
    {"--ep-size,--ep,--expert-parallel-size", "1", kRanks},
    {"--nnodes", "1", kRanks},
    {"--main-gpu,--base-gpu-id", "0", "the environment's CUDA_VISIBLE_DEVICES=N chooses the GPU"},
    {"--tokenizer-mode,--config-format", "auto|hf"},
    {"--chat-template-content-format", "auto|string"},  // parts are joined to a text
    {"--cpu-offload-gb,--n-cpu-moe", "0"},
    {"--schedule-conservativeness", "1"},
    {"--stream-interval", "1"},
    {"--disaggregation-mode", "null"},
    {"--moe-a2a-backend", "none"},
    {"--prio", "0"},
    {"--radix-eviction-policy", "lru"},
    {"--json-model-override-args,--hf-overrides,--override-generation-config", "{}"},
});

constexpr std::array kRefused = std::to_array<const char*>({
    "--download-dir",
    "--cpu-moe,--override-tensor,--tensor-split,--no-kv-offload",
    "--max-prefill-tokens",
    "--prefill-max-requests",
    "--kv-transfer-config,--kv-offloading-size",
    "--slot-save-path",
    "--context-shift",
    "--enable-dp-attention,--enable-eplb",
    "--speculative-draft-model-revision",
    "--speculative-token-map",
    "--speculative-accept-threshold-single,--speculative-accept-threshold-acc",
    "--spec-draft-p-min,--draft-p-min,--draft-p-split,--lookup-cache-static,--lookup-cache-dynamic",
    "--constrained-json-whitespace-pattern,--structured-outputs-config",
    "--reasoning-budget-message",
    "--limit-mm-per-prompt,--mm-processor-kwargs,--mmproj,--mmproj-url",
    "--torchao-config",
    "--completion-template",
    "--override-kv,--rope-scaling,--rope-scale,--rope-freq-base,--rope-freq-scale,--yarn-orig-ctx",
    "--numa,--cpu-mask",
    "--spm-infill",
    "--props",
    "--timeout",
    "--log-file,--verbosity",
    "--lora-paths,--lora-modules,--lora,--lora-scaled,--max-loaded-loras,--max-cpu-loras",
    "--enable-lora,--max-lora-rank",
    "--admin-api-key",
    "--ssl-keyfile-password,--ssl-ciphers",
    "--crash-dump-folder",
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
    {"-fa", "--flash-attn"},
    {"-b", "--batch-size"},
    {"-ub", "--ubatch-size"},
    {"-tb", "--threads-batch"},
    {"-sm", "--split-mode"},
    {"-mg", "--main-gpu"},
    {"-ot", "--override-tensor"},
    {"-cmoe", "--cpu-moe"},
    {"-ncmoe", "--n-cpu-moe"},
    {"-nkvo", "--no-kv-offload"},
    {"-dev", "--device"},
    {"-ts", "--tensor-split"},
    {"-nocb", "--no-cont-batching"},
    {"-cram", "--cache-ram"},
    {"-ctxcp", "--ctx-checkpoints"},
    {"-sps", "--slot-prompt-similarity"},
    {"-sys", "--system-prompt"},
    {"-hft", "--hf-token"},
    {"-lv", "--verbosity"},
    {"-mm", "--mmproj"},
    {"-mmu", "--mmproj-url"},
});

[[noreturn]] void refuse(const std::string& name, const std::string& why) {
  throw CLI::ValidationError(name, why);
}

// Whether the verb has the option itself.
bool has(const CLI::App& app, const std::string& name) {
  return app.get_option_no_throw(name) != nullptr;
}

bool chooses_gpu(const CLI::App& app) {
  const CLI::Option* device = app.get_option_no_throw("--device");
  return device != nullptr && device->count() > 0 && device->as<std::string>().starts_with("cuda");
}

// Pages stay in memory once they are used. Where a limit holds, reserving memory would fail later.
void lock_memory() {
  rlimit limit = {};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur != RLIM_INFINITY) {
    return spdlog::warn("--mlock has no effect: `ulimit -l` must be unlimited");
  }
  if (::mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) == 0) return;
  spdlog::warn("--mlock has no effect: {}", std::strerror(errno));
}

// Hidden options of these names, unless the verb has them itself. Calls read(name, value); the
// value may be missing where `values_min` is 0.
template <class Read>
void add_hidden(CLI::App& app, const std::string& names, int values_min, const Read& read) {
  for (const std::string& name : CLI::detail::split(names, ',')) {
    if (has(app, name)) continue;
    app.add_option_function<std::string>(
           name, [name, read](const std::string& value) { read(name, value); }, "")
        ->expected(values_min, 1)
        ->default_str("")
        ->group("");
  }
}

void add_flags(CLI::App& app) {
  app.add_flag_callback(
         "--enforce-eager,--disable-cuda-graph",
         // Which queues of a GPU read when they open.
         [] { ::setenv("BANYAN_CUDA_GRAPHS", "0", /*overwrite=*/1); }, "")
      ->group("");
  app.add_flag_callback("--mlock", lock_memory, "")->group("");
  app.add_flag_callback(
         "--log-disable", [] { spdlog::set_level(spdlog::level::off); }, "")
      ->group("");
  for (const Explained& option : kAlways) {
    app.add_flag_callback(
           option.names,
           [option] { spdlog::info("{} has no effect: {}", option.names, option.why); }, "")
        ->group("");
  }
}

// Options with values that no result depends on.
void add_noted(CLI::App& app) {
  for (const Explained& option : kLists) {
    app.add_option_function<std::vector<std::string>>(
           option.names,
           [option](const std::vector<std::string>&) {
             spdlog::info("{} has no effect: {}", option.names, option.why);
           },
           "")
        ->default_str("")
        ->group("");
  }
  for (const Explained& option : kOwnWay) {
    add_hidden(app, option.names, option.names == kFlashAttention ? 0 : 1,
               [option](const std::string& name, std::string value) {
                 if (name == kFlashAttention && !value.empty()) {
                   need_one_of(name, value, {"on", "off", "auto", "1", "0"});
                 }
                 if (option.number) need_number(name, value);
                 spdlog::info("{} has no effect: {}", name, option.why);
               });
  }
  add_hidden(app, "--n-gpu-layers,--gpu-layers", 1,
             [&app](const std::string& name, const std::string& count) {
               need_number(name, count, {"auto", "all"});
               if (count == "0" && !chooses_gpu(app)) return;
               spdlog::warn(
                   "{} has no effect: all layers run on one device, the CPU unless --device is "
                   "cuda",
                   name);
             });
}

// Whether both say the same, as texts in any case or as JSON: 1.0 is 1.
bool means(const std::string& value, const std::string& neutral) {
  if (CLI::detail::to_lower(value) == neutral) return true;
  Json given = Json::parse(value, nullptr, false), wanted = Json::parse(neutral, nullptr, false);
  return !given.is_discarded() && !wanted.is_discarded() && given == wanted;
}

void add_neutral(CLI::App& app) {
  for (const Neutral& option : kNeutral) {
    add_hidden(app, option.names, 1, [option](const std::string& name, const std::string& value) {
      std::vector<std::string> values = CLI::detail::split(option.values, '|');
      if (std::ranges::any_of(values, [&](auto& one) { return means(value, one); })) return;
      std::string message =
          fmt::format("{} is not supported yet, only {}", value, fmt::join(values, " or "));
      if (*option.instead != '\0') message += fmt::format("; {}", option.instead);
      refuse(name, message);
    });
  }
}

// Whether MODEL, or --model, is `path`.
bool is_model(const CLI::App& app, std::string_view path) {
  auto plain = [](std::string_view text) { return text.substr(0, text.find_last_not_of('/') + 1); };
  return std::ranges::any_of(std::array{"MODEL", "--model"}, [&](const char* name) {
    const CLI::Option* option = app.get_option_no_throw(name);
    return option != nullptr && option->count() > 0 && plain(option->results()[0]) == plain(path);
  });
}

// Options of which some values are refused, or all.
void add_refused(CLI::App& app) {
  add_hidden(app, "--grammar-backend,--guided-decoding-backend", 1,
             [](const std::string& name, const std::string& value) {
               if (value == "none") refuse(name, "none: grammars cannot be switched off");
               spdlog::info("{} {} has no effect: Banyan has its own grammar backend", name, value);
             });
  add_hidden(app, "--tokenizer-path,--tokenizer", 1,
             [&app](const std::string& name, const std::string& path) {
               if (is_model(app, path)) return;
               refuse(name, path + " is not the model, whose own tokenizer is used");
             });
  for (const char* names : kRefused) {
    add_hidden(app, names, 0, [](const std::string& name, const std::string&) {
      refuse(name, "is not supported yet");
    });
  }
}

}  // namespace

void add_peer_options(CLI::App& app) {
  add_flags(app);
  add_noted(app);
  add_neutral(app);
  add_refused(app);
}

std::string respell_peer_option(const std::string& word) {
  for (auto [short_name, name] : kShortNames) {
    if (word == short_name) return name;
  }
  return word;
}

}  // namespace banyan::cli
