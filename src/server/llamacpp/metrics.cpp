#include "server/llamacpp/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace banyan {

std::string llama_metrics(const LlamaFigures& figures) {
  std::string out;
  auto add = [&](std::string_view kind, std::string_view name, std::string_view help,
                 double value) {
    out += fmt::format("# HELP llamacpp:{0} {1}\n# TYPE llamacpp:{0} {2}\nllamacpp:{0} {3}\n", name,
                       help, kind, value);
  };
  const EngineStats& stats = figures.stats;
  auto count = [](int64_t n) -> double { return n; };
  auto rate = [&](int64_t tokens, double seconds) {
    return seconds > 0 ? count(tokens) / seconds : 0;
  };
  constexpr std::string_view kCounter = "counter", kGauge = "gauge";
  add(kCounter, "prompt_tokens_total", "Prompt tokens computed", count(stats.prompt_tokens));
  add(kCounter, "prompt_tokens_cached_total", "Prompt tokens found in the prefix cache",
      count(stats.cached_tokens));
  add(kCounter, "prompt_seconds_total", "Time spent on prompts, in seconds", figures.prompt_s);
  add(kCounter, "tokens_predicted_total", "Generated tokens", count(stats.generated_tokens));
  add(kCounter, "tokens_predicted_seconds_total", "Time spent on generation, in seconds",
      figures.predicted_s);
  add(kCounter, "n_decode_total", "Steps", count(stats.steps));
  add(kCounter, "n_tokens_max", "Tokens of the longest request", count(figures.tokens_max));
  add(kCounter, "spec_decode_num_draft_tokens_total", "Draft tokens proposed",
      count(stats.draft_tokens));
  add(kCounter, "spec_decode_num_accepted_tokens_total", "Accepted draft tokens",
      count(stats.accepted_draft_tokens));
  add(kCounter, "spec_decode_num_drafts_total", "Drafts verified", count(stats.drafts));
  add(kGauge, "prompt_tokens_seconds", "Prompt tokens per second, per request",
      rate(stats.prompt_tokens, figures.prompt_s));
  add(kGauge, "predicted_tokens_seconds", "Generated tokens per second, per request",
      rate(stats.generated_tokens, figures.predicted_s));
  add(kGauge, "requests_processing", "Running requests", count(stats.running));
  add(kGauge, "requests_deferred", "Queued requests", count(stats.queued));
  add(kGauge, "n_busy_slots_per_decode", "Mean generated tokens per step",
      count(stats.generated_tokens) / count(std::max<int64_t>(1, stats.steps)));
  return out;
}

}  // namespace banyan
