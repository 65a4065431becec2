#include "banyan/engine.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "engine/assemble.h"
#include "engine/batch_builder.h"
#include "engine/memory_plan.h"
#include "engine/runner.h"
#include "engine/sampler.h"
#include "engine/scheduler.h"
#include "engine/speculate.h"

namespace banyan {
namespace {

constexpr int64_t kNewTokensMax = int64_t{1} << 31;  // the context length ends it long before
constexpr double kSecondsMax = 1e9;

Status check_tokens(std::span<const TokenId> tokens, int64_t vocabulary, std::string_view what) {
  for (TokenId token : tokens) {
    if (token < 0 || token >= vocabulary) {
      return invalid_argument("{}: token {} is not in the vocabulary of {}", what, token,
                              vocabulary);
    }
  }
  return {};
}

Status check_limit(std::string_view what, int64_t value, int64_t max) {
  if (value >= 0 && value <= max) return {};
  return invalid_argument("{} is {}, allowed are 0 to {}", what, value, max);
}

Status check_supported(const GenerationOptions& options, const EngineConfig& config) {
  if (!options.stop.empty() || options.grammar) {
    return invalid_argument("{}: an Engine sees no text; ask an Llm",
                            options.grammar ? "a grammar" : "stop strings");
  }
  if (!options.adapter.empty()) {
    return unsupported("adapter \"{}\": adapters are not supported yet", options.adapter);
  }
  if (options.priority != 0 && config.schedule_policy != "priority") {
    return unsupported("priority {}: the schedule policy is {}, not priority", options.priority,
                       config.schedule_policy);
  }
  return {};
}

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

SchedulerConfig scheduler_config(const EngineConfig& config, const Runner& runner) {
  StateClasses classes = runner.classes();
  if (config.reuse_generated_state && classes.prompt_only) {
    spdlog::warn(
        "reuse_generated_state: answers that resume behind generated tokens are not bit for bit "
        "those of a run without the cache");
    classes.prompt_only = false;
  }
  return {.policy = schedule_policy(config.schedule_policy),
          .aging_period = config.aging_period,
          .radix_cache = config.radix_cache,
          .running_max = config.running_max,
          .prefill_rows_max = runner.info().prefill_rows_max,
          .snapshot_interval_tokens = config.snapshot_interval_tokens,
          .classes = classes,
          .units = unit_counts(runner.info())};
}

TokenCounts count_prompt(const std::vector<TokenId>& prompt, int64_t vocabulary) {
  TokenCounts counts;
  counts.in_output.assign(static_cast<size_t>(vocabulary), 0);
  counts.in_prompt.assign(static_cast<size_t>(vocabulary), 0);
  for (TokenId token : prompt) counts.in_prompt[static_cast<size_t>(token)] = 1;
  return counts;
}

}  // namespace

// step() is plan, launch and commit in a row. Sinks run in commit and in the delivery of
// cancellations, and may submit and cancel: neither moves a Sequence.
class Engine::Impl {
 public:
  Impl(const EngineConfig& config, std::unique_ptr<Runner> runner)
      : config_(config),
        runner_(std::move(runner)),
        scheduler_(scheduler_config(config, *runner_)),
        sampler_(info().vocabulary),
        speculator_(config, info().vocabulary, runner_->classes().needs_snapshots()),
        mask_(static_cast<size_t>((info().vocabulary + 31) / 32)) {
    // Page tables grow while sequences do; only prefixes that many share make them longer.
    auto pages = static_cast<size_t>(info().total_tokens_max / info().page_size_tokens);
    for (int c = 0; c < runner_->classes().count; ++c) {
      if (!runner_->classes()[c].paged()) continue;
      batch_.tables[static_cast<size_t>(c)].units.reserve(pages);
    }
  }

  Result<SequenceId> submit(GenerateRequest request, TokenSink sink);
  void cancel(SequenceId id) { scheduler_.cancel(id); }
  void flush_cache() { scheduler_.tree().flush(); }
  void hold(uint64_t key, std::vector<TokenId> tokens) {
    scheduler_.hold(key, {}, std::move(tokens));
  }
  void release(uint64_t key) { scheduler_.release(key); }
  bool step();  // must not be called from a sink

  const EngineInfo& info() const { return runner_->info(); }
  std::vector<ExpertCounts> expert_counts() const { return runner_->expert_counts(); }
  EngineStats stats() const;
  const Scheduler& scheduler() const { return scheduler_; }

 private:
  // What the model said in one row that was asked for: about a prompt token, or a new one.
  struct RowResult {
    TokenId token = 0;
    float logprob = 0;
    // In tops_: the most likely tokens, and behind them those that the request names.
    size_t top_begin = 0, top_count = 0, chosen_count = 0;
    const char* problem = nullptr;  // why there is no token
    bool speaks = true;             // or nothing of this counts: the row is a rejected draft's
  };

  bool step_once();
  Status check(const GenerateRequest& request) const;
  void deliver_removed();
  void deliver(std::unique_ptr<Sequence> s, FinishReason reason);

  void plan();    // queued requests -> plan_, batch_, uses_
  void launch();  // batch_ -> results_, one per use
  void commit();  // results_ -> sequences and events

  RowResult read_row(const LogitRowUse& use, const LogitRow& row);
  void add_token(Sequence& s, TokenId token);
  std::optional<TokenId> sample(const Sequence& s, int64_t position, const LogitRow& row);
  void report_prompt_token(const LogitRowUse& use, const RowResult& result);
  void report_token(const LogitRowUse& use, const RowResult& result);
  FinishReason finish_reason(const Sequence& s, TokenId token) const;
  void end(Sequence& s, TokenEvent event);
  std::span<const TokenLogprob> top_of(const RowResult& result) const {
    return std::span(tops_).subspan(result.top_begin, result.top_count);
  }
  std::span<const TokenLogprob> chosen_of(const RowResult& result) const {
    return std::span(tops_).subspan(result.top_begin + result.top_count, result.chosen_count);
  }

  EngineConfig config_;
  std::unique_ptr<Runner> runner_;
  Scheduler scheduler_;
  Sampler sampler_;
  Speculator speculator_;
  SequenceId last_id_ = 0;
  EngineStats totals_;

  StepPlan plan_;
  Batch batch_;
  std::vector<LogitRowUse> uses_;
  std::vector<RowResult> results_;
  std::vector<TokenLogprob> tops_;
  std::vector<uint32_t> mask_;
  bool stepping_ = false;
};

Status Engine::Impl::check(const GenerateRequest& request) const {
  const SamplingParams& sampling = request.sampling;
  const GenerationOptions& options = request.options;
  TRY(sampling.validate());
  TRY(check_supported(options, config_));
  if (request.prompt.empty()) return invalid_argument("the prompt has no tokens");
  auto prompt_tokens = static_cast<int64_t>(request.prompt.size());
  TRY(check_limit("prompt tokens", prompt_tokens, config_.prompt_tokens_max));
  TRY(check_tokens(request.prompt, info().vocabulary, "prompt"));
  TRY(check_limit("max_new_tokens", options.max_new_tokens, kNewTokensMax));
  TRY(check_limit("top_logprobs", options.top_logprobs, config_.top_logprobs_max));
  TRY(check_limit("stop_token_ids", static_cast<int64_t>(options.stop_token_ids.size()),
                  config_.stop_token_ids_max));
  TRY(check_tokens(options.stop_token_ids, info().vocabulary, "stop_token_ids"));
  TRY(check_limit("min_new_tokens", options.min_new_tokens, options.max_new_tokens));
  TRY(check_limit("logprob_token_ids", static_cast<int64_t>(options.logprob_token_ids.size()),
                  config_.top_logprobs_max));
  TRY(check_tokens(options.logprob_token_ids, info().vocabulary, "logprob_token_ids"));
  for (auto [name, seconds] :
       {std::pair("timeout_s", options.timeout_s), {"age_s", options.age_s}}) {
    if (seconds >= 0 && seconds <= kSecondsMax) continue;
    return invalid_argument("{} is {}, allowed are 0 to {}", name, seconds, kSecondsMax);
  }
  TRY(check_limit("logit_bias entries", static_cast<int64_t>(sampling.logit_bias.size()),
                  config_.logit_bias_max));
  for (auto [token, bias] : sampling.logit_bias) {
    TRY(check_tokens(std::span(&token, 1), info().vocabulary, "logit_bias"));
  }
  if (options.prompt_logprobs_begin) {
    TRY(check_limit("prompt_logprobs_begin", *options.prompt_logprobs_begin, prompt_tokens));
  }
  int64_t room = info().context_length_tokens - (options.max_new_tokens > 0 ? 1 : 0);
  if (prompt_tokens > room) {
    return invalid_argument("the prompt has {} tokens, the context length is {}", prompt_tokens,
                            info().context_length_tokens);
  }
  return {};
}

Result<SequenceId> Engine::Impl::submit(GenerateRequest request, TokenSink sink) {
  TRY(check(request));
  const GenerationOptions& options = request.options;
  if (!sink) return invalid_argument("the request has no sink to tell of its tokens");
  auto s = std::make_unique<Sequence>();
  s->prompt_tokens = static_cast<int64_t>(request.prompt.size());
  s->tokens_max = std::min(s->prompt_tokens + options.max_new_tokens, info().context_length_tokens);
  if (!scheduler_.fits_alone(s->tokens_max)) {
    return invalid_argument(
        "{} tokens of prompt and output do not fit into the {} tokens of memory; ask "
        "for fewer new tokens",
        s->tokens_max, info().total_tokens_max);
  }
  if (scheduler_.waiting() >= config_.queued_max) {
    return exhausted("{} requests are waiting, which is the limit", scheduler_.waiting());
  }
  s->id = ++last_id_;
  s->name_space = {options.adapter, options.cache_salt, options.extra_key};
  s->arrived_ns = now_ns();
  s->queues_ns = s->arrived_ns - static_cast<int64_t>(options.age_s * 1e9);
  if (options.timeout_s > 0) {
    s->deadline_ns = s->arrived_ns + static_cast<int64_t>(options.timeout_s * 1e9);
  }
  if (options.prompt_logprobs_begin) s->prompt_logprobs_next = *options.prompt_logprobs_begin;
  s->tokens.reserve(static_cast<size_t>(s->tokens_max));
  s->tokens = request.prompt;
  if (request.sampling.has_penalties()) s->counts = count_prompt(s->tokens, info().vocabulary);
  s->request = std::move(request);
  s->sink = std::move(sink);
  speculator_.propose(*s, scheduler_.running() + 1);
  scheduler_.enqueue(std::move(s));
  return last_id_;
}

bool Engine::Impl::step() {
  CHECK(!stepping_, "a sink called step()");
  stepping_ = true;
  bool worked = step_once();
  stepping_ = false;
  return worked;
}

bool Engine::Impl::step_once() {
  deliver_removed();
  int64_t began_ns = now_ns(), generated = totals_.generated_tokens;
  plan();
  if (plan_.spans.empty()) return false;
  launch();
  DraftGain::Step step = speculator_.shape(plan_);
  commit();
  step.tokens = totals_.generated_tokens - generated;
  step.time_s = static_cast<double>(now_ns() - began_ns) * 1e-9;
  speculator_.observe(step);
  ++totals_.steps;
  return true;
}

void Engine::Impl::deliver_removed() {
  while (auto s = scheduler_.remove_cancelled()) deliver(std::move(s), FinishReason::kCancelled);
  if (!scheduler_.has_deadlines()) return;
  int64_t now = now_ns();
  while (auto s = scheduler_.remove_expired(now)) deliver(std::move(s), FinishReason::kTimeout);
}

void Engine::Impl::deliver(std::unique_ptr<Sequence> s, FinishReason reason) {
  s->sink({.sequence = s->id, .position = s->length(), .finish = reason});
}

void Engine::Impl::plan() {
  scheduler_.plan(plan_);
  for (const PlannedSpan& span : plan_.spans) {
    Sequence& s = *span.sequence;
    if (s.queued_s == 0) s.queued_s = static_cast<double>(now_ns() - s.arrived_ns) * 1e-9;
  }
  build_batch(plan_, runner_->classes(), batch_, uses_);
}

void Engine::Impl::launch() {
  Status valid = batch_.validate(info().vocabulary, runner_->classes());
  CHECK(valid.has_value(), "{}", valid.error().message);
  results_.clear();
  tops_.clear();
  runner_->run(batch_, [this](int64_t first, Tensor logits, const LogitStats& stats) {
    for (int64_t i = 0; i < logits.dim(0); ++i) {
      Tensor row = logits.rows(i, 1);
      results_.push_back(read_row(uses_[static_cast<size_t>(first + i)],
                                  {.logits = {row.f32(), static_cast<size_t>(row.count())},
                                   .argmax = stats.argmax[i],
                                   .log_sum_exp = stats.log_sum_exp[i]}));
    }
  });
}

Engine::Impl::RowResult Engine::Impl::read_row(const LogitRowUse& use, const LogitRow& row) {
  if (!Speculator::speaks(use)) return {.speaks = false};
  if (!std::isfinite(row.log_sum_exp)) {
    return {.problem =
                "the model's output is not a number; its weights are damaged or overflow "
                "this dtype"};
  }
  Sequence& s = *use.sequence;
  auto next = static_cast<size_t>(use.position + 1);
  RowResult result;
  std::optional<TokenId> token = use.samples ? sample(s, use.position + 1, row) : s.tokens[next];
  if (!token) return {.problem = "the constraint allows no token"};
  result.token = *token;
  result.logprob = Sampler::logprob(row, result.token);
  std::span<const TokenLogprob> top = sampler_.top(row, s.request.options.top_logprobs);
  result.top_begin = tops_.size();
  result.top_count = top.size();
  tops_.insert(tops_.end(), top.begin(), top.end());
  result.chosen_count = s.request.options.logprob_token_ids.size();
  for (TokenId id : s.request.options.logprob_token_ids)
    tops_.push_back({id, Sampler::logprob(row, id)});
  if (use.samples) add_token(s, result.token);
  return result;
}

// The next row of the step may be about what follows.
void Engine::Impl::add_token(Sequence& s, TokenId token) {
  s.tokens.push_back(token);
  ++s.drawn;
  ++totals_.generated_tokens;
  if (s.request.sampling.has_penalties()) ++s.counts.in_output[static_cast<size_t>(token)];
  if (s.request.constraint) s.request.constraint->accept(token);
  s.finish = finish_reason(s, token);
}

std::optional<TokenId> Engine::Impl::sample(const Sequence& s, int64_t position,
                                            const LogitRow& row) {
  DrawContext context{
      .params = s.request.sampling, .counts = &s.counts, .mask = {}, .position = position};
  bool may_stop = s.length() - s.prompt_tokens >= s.request.options.min_new_tokens;
  if (!s.request.constraint && (may_stop || s.request.options.stop_token_ids.empty())) {
    return sampler_.draw(row, context);
  }
  std::ranges::fill(mask_, s.request.constraint ? 0 : ~0u);
  if (s.request.constraint) s.request.constraint->fill_mask(mask_);
  if (!may_stop) {
    for (TokenId stop : s.request.options.stop_token_ids) {
      mask_[static_cast<size_t>(stop) / 32] &= ~(1u << (stop % 32));
    }
  }
  if (auto tail = info().vocabulary % 32; tail > 0) mask_.back() &= (1u << tail) - 1;
  if (std::ranges::all_of(mask_, [](uint32_t word) { return word == 0; })) return std::nullopt;
  context.mask = mask_;
  return sampler_.draw(row, context);
}

void Engine::Impl::commit() {
  for (PlannedSpan& span : plan_.spans) speculator_.settle(span, scheduler_.running());
  scheduler_.commit(plan_);
  for (const PlannedSpan& span : plan_.spans) {
    int64_t prompt_end = std::min(span.end(), span.sequence->prompt_tokens);
    totals_.prompt_tokens += std::max<int64_t>(0, prompt_end - span.first);
  }
  for (size_t i = 0; i < uses_.size(); ++i) {
    if (!results_[i].speaks) continue;
    Sequence& s = *uses_[i].sequence;
    if (results_[i].problem != nullptr) {
      end(s, {.finish = FinishReason::kError,
              .error = {ErrorCode::kCorrupt, fmt::format("position {}: {}", uses_[i].position + 1,
                                                         results_[i].problem)}});
      // Later rows of the same sequence have nobody to report to.
      while (i + 1 < uses_.size() && uses_[i + 1].sequence == &s) ++i;
    } else if (uses_[i].samples) {
      report_token(uses_[i], results_[i]);
    } else {
      report_prompt_token(uses_[i], results_[i]);
    }
  }
  for (const PlannedSpan& span : plan_.spans) {
    if (span.sequence != nullptr && span.sequence->request.options.max_new_tokens == 0 &&
        span.sequence->pending() == 0) {
      end(*span.sequence, {.finish = FinishReason::kLength});
    }
  }
}

void Engine::Impl::report_prompt_token(const LogitRowUse& use, const RowResult& result) {
  use.sequence->prompt_logprobs_next = use.position + 2;
  use.sequence->sink({.sequence = use.sequence->id,
                      .position = use.position + 1,
                      .has_token = true,
                      .from_prompt = true,
                      .token = result.token,
                      .logprob = result.logprob,
                      .top = top_of(result),
                      .chosen = chosen_of(result)});
}

void Engine::Impl::report_token(const LogitRowUse& use, const RowResult& result) {
  Sequence& s = *use.sequence;
  TokenEvent event{.sequence = s.id,
                   .position = use.position + 1,
                   .has_token = true,
                   .token = result.token,
                   .logprob = result.logprob,
                   .top = top_of(result),
                   .chosen = chosen_of(result),
                   .cached_tokens = s.cached_tokens,
                   .queued_s = s.queued_s};
  if (event.position + 1 == s.length()) event.finish = s.finish;
  if (event.finish == FinishReason::kStop) event.matched_stop = result.token;
  if (event.finish == FinishReason::kNone) return s.sink(event);
  end(s, std::move(event));
}

FinishReason Engine::Impl::finish_reason(const Sequence& s, TokenId token) const {
  const std::vector<TokenId>& stops = s.request.options.stop_token_ids;
  if (std::ranges::find(stops, token) != stops.end()) return FinishReason::kStop;
  bool full = static_cast<int64_t>(s.tokens.size()) >= s.tokens_max;
  return full ? FinishReason::kLength : FinishReason::kNone;
}

// The sequence's last event; its pages are free before the sink hears of it.
void Engine::Impl::end(Sequence& s, TokenEvent event) {
  for (PlannedSpan& span : plan_.spans) {
    if (span.sequence == &s) span.sequence = nullptr;
  }
  event.sequence = s.id;
  event.cached_tokens = s.cached_tokens;
  event.queued_s = s.queued_s;
  if (!event.has_token) event.position = static_cast<int64_t>(s.tokens.size());
  std::unique_ptr<Sequence> ended = scheduler_.remove(&s);
  ended->sink(event);
}

EngineStats Engine::Impl::stats() const {
  EngineStats stats = totals_;
  stats.running = scheduler_.running();
  stats.queued = scheduler_.waiting();
  const StateClasses& classes = runner_->classes();
  for (int c = 0; c < classes.count; ++c) {
    RadixTree::Use use = scheduler_.tree().use(c);
    if (c == kPathClass) {
      stats.pages_free = use.free;
      stats.pages_cached = use.cached;
      stats.pages_total = use.total;
    } else if (classes[c].snapshots() && classes[c].decides()) {
      stats.slots_free = use.free;
      stats.slots_cached = use.cached;
      stats.slots_total = use.total;
    }
  }
  stats.cached_tokens = scheduler_.cached_tokens();
  stats.retracted = scheduler_.retracted();
  stats.drafts = speculator_.drafts();
  stats.draft_tokens = speculator_.draft_tokens();
  stats.accepted_draft_tokens = speculator_.accepted_tokens();
  return stats;
}

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Engine::~Engine() = default;

Result<std::unique_ptr<Engine>> Engine::load(const EngineConfig& config,
                                             const LoadProgress& progress) {
  return EngineAssembly::load(config, registered_families(), progress);
}

const Scheduler& EngineAssembly::scheduler(const Engine& engine) {
  return engine.impl_->scheduler();
}

Result<std::unique_ptr<Engine>> EngineAssembly::load(const EngineConfig& config,
                                                     std::span<const Family> families,
                                                     const LoadProgress& progress) {
  return guard([&]() -> Result<std::unique_ptr<Engine>> {
    auto runner = TRY(Runner::load(config, progress, families));
    return std::unique_ptr<Engine>(
        new Engine(std::make_unique<Engine::Impl>(config, std::move(runner))));
  });
}

Result<SequenceId> Engine::submit(GenerateRequest request, TokenSink sink) {
  return guard([&] { return impl_->submit(std::move(request), std::move(sink)); });
}
void Engine::cancel(SequenceId sequence) {
  impl_->cancel(sequence);
}
void Engine::flush_cache() {
  impl_->flush_cache();
}
void Engine::hold(uint64_t key, std::vector<TokenId> tokens) {
  impl_->hold(key, std::move(tokens));
}
void Engine::release(uint64_t key) {
  impl_->release(key);
}
bool Engine::step() {
  return impl_->step();
}
const EngineInfo& Engine::info() const {
  return impl_->info();
}
EngineStats Engine::stats() const {
  return impl_->stats();
}
std::vector<ExpertCounts> Engine::expert_counts() const {
  return impl_->expert_counts();
}

}  // namespace banyan
