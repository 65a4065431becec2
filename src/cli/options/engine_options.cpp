#include "cli/options/engine_options.h"

#include <CLI/CLI.hpp>

#include "banyan/options.h"
#include "base/error.h"
#include "base/log.h"
#include "cli/options/adapter_options.h"
#include "cli/options/checks.h"
#include "cli/options/model_options.h"
#include "cli/options/options.h"
#include "cli/options/parse_errors.h"
#include "cli/options/peer_options.h"
#include "engine/step_times.h"

namespace banyan::cli {

Status EngineOptions::settle() {
  if (no_radix_cache) config.radix_cache = false;
  if (priority_scheduling) config.schedule_policy = "priority";
  if (!emulate_steps.empty()) {
    config.emulated_steps = TRY(read_step_times(emulate_steps));
    spdlog::warn("steps are emulated: outputs are random tokens, not the model's");
  }
  if (prefill_tokens_max && *prefill_tokens_max < config.prefill_tokens()) {
    return invalid_argument(
        "--max-prefill-tokens {} is less than the {} prompt tokens of a step; "
        "give --chunked-prefill-size {} instead",
        *prefill_tokens_max, config.prefill_tokens(), *prefill_tokens_max);
  }
  TRY(cli::settle(storage, config));
  return config.validate();
}

EngineOptions serving_options() {
  return {.config = {.running_max = 256, .queued_max = 1024, .prefill_step_ms = 500}};
}

void add_state_options(CLI::App& app, EngineConfig& engine) {
  app.add_option("--page-size,--block-size", engine.page_size_tokens,
                 "Tokens per page of the cache, a power of two")
      ->type_name("N");
  app.add_flag(
      "--reuse-generated-state", engine.reuse_generated_state,
      "Recurrent models and expanded prefill: cache generated tokens too; results are then "
      "no longer exactly repeatable");
}

void add_engine_options(CLI::App& app, EngineOptions& o) {
  EngineConfig& engine = o.config;
  app.add_option("--max-running-requests,--max-num-seqs,--parallel", engine.running_max,
                 "Maximum number of requests that run at the same time")
      ->type_name("N");
  app.add_option("--mem-fraction-static,--gpu-memory-utilization", engine.memory_fraction,
                 "Fraction of the memory left after the weights that the cache may use")
      ->type_name("F");
  OptionGroup group(app, "Scheduling and cache");
  add_state_options(app, engine);
  app.add_option(
         "--chunked-prefill-size,--max-num-batched-tokens,--batch-size",
         engine.chunked_prefill_tokens,
         "Maximum prompt tokens per step, in addition to one token per decoding request; 0: "
         "512 on CPUs, 4096 on a GPU")
      ->transform(with_multiples())
      ->type_name("N");
  app.add_option("--prefill-step-ms", engine.prefill_step_ms,
                 "While other requests decode, read as many prompt tokens in a step as take about "
                 "this long, at least 64; 0: always --chunked-prefill-size")
      ->type_name("MS");
  app.add_option("--ubatch-size", engine.chunked_prefill_tokens, "")  // wins over --batch-size
      ->transform(with_multiples())
      ->default_str("")
      ->group("");
  app.add_option("--max-prefill-tokens", o.prefill_tokens_max, "")  // of SGLang
      ->transform(with_multiples())
      ->default_str("")
      ->group("");
  app.add_option("--max-logprobs", engine.top_logprobs_max, "")->default_str("")->group("");
  app.add_option("--max-queued-requests", engine.queued_max,
                 "Maximum number of queued requests; more are answered with 503, except those of a "
                 "client (an API key, else an address) with less than its share of the queue")
      ->type_name("N");
  app.add_option("--max-total-tokens", engine.total_tokens_max,
                 "Capacity of the cache in tokens; 0: what the memory allows")
      ->transform(with_multiples())
      ->type_name("N");
  app.add_option("--schedule-policy,--scheduling-policy", engine.schedule_policy,
                 "lpm: longest cached prefix first; fcfs: in order of arrival; priority")
      ->transform(one_of({"lpm", "fcfs", "priority"}))
      ->type_name("NAME");
  app.add_option("--aging-period", engine.aging_period,
                 "lpm: every Nth admission goes to the request that has waited longest")
      ->type_name("N");
  app.add_option("--recurrent-state-memory-ratio", engine.snapshot_fraction,
                 "Recurrent models: fraction of the cache for snapshots of their state")
      ->type_name("F");
  app.add_option("--snapshot-interval-tokens", engine.snapshot_interval_tokens,
                 "Recurrent models: tokens between state snapshots in long prompts")
      ->type_name("N");
  app.add_flag("--disable-radix-cache,--no-enable-prefix-caching,--no-cache-prompt",
               o.no_radix_cache, "Do not cache prefixes for later requests");
  add_choice_flag(
      app,
      "--enable-overlap-schedule,--async-scheduling,!--disable-overlap-schedule,"
      "!--no-async-scheduling",
      engine.overlap_schedule,
      "Launch a step before the previous step's tokens are read; same output. Default: on devices, "
      "not on CPUs");
  app.add_flag("--enable-priority-scheduling", o.priority_scheduling,
               "The same as --schedule-policy priority");
  add_storage_options(app, o.storage, engine);
  OptionGroup developers(app, "For developers");
  app.add_option("--emulate-steps", o.emulate_steps,
                 "Compute nothing: wait as long as the steps in this file of `bench one-batch "
                 "--json` took, and draw random tokens. Needs --max-total-tokens")
      ->default_str("")
      ->type_name("FILE");
}

}  // namespace banyan::cli

namespace banyan {

Result<EngineConfig> parse_engine_options(const std::vector<std::string>& arguments) {
  CLI::App app{"", "banyan serve"};
  app.set_help_flag();
  cli::EngineOptions options = cli::serving_options();
  cli::AdapterOptions adapters;
  cli::add_model_options(app, options.config, {.word = false});
  cli::add_adapter_options(app, options.config, adapters);
  cli::add_engine_options(app, options);
  cli::add_peer_options(app);
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& error) {
    return invalid_argument("{}", cli::explain(error, app));
  }
  if (options.config.model_path.empty()) return invalid_argument("--model is missing");
  if (!adapters.of_all.empty()) {
    return unsupported("--lora: requests name their adapter here; use --lora-paths and lora_path");
  }
  TRY(options.settle());
  return options.config;
}

}  // namespace banyan
