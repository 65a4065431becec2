#include "engine/loop.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "base/log.h"
#include "base/signed.h"
#include "engine/draws/draw_builder.h"
#include "engine/request_check.h"
#include "engine/startup/memory_plan.h"
#include "engine/startup/scheduler_config.h"

namespace banyan {
namespace {

int64_t now_ns() {
  auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

EngineConfig limit_drafts(EngineConfig config, const StateClasses& classes) {
  config.draft_tokens_max =
      narrow<int>(std::min<int64_t>(config.draft_tokens_max, classes.draft_rows_max));
  if (config.draft_topk > 1 && !classes.draft_trees) {
    spdlog::warn(
        "draft_topk {}: drafts of this model are chains, since it keeps recurrent or block "
        "states, which have no copy for a branch",
        config.draft_topk);
    config.draft_topk = 1;
  }
  return config;
}

bool has_token(const DrawResult& result) {
  return std::isfinite(result.log_sum_exp) && result.token >= 0;
}

Error not_a_number(int64_t position) {
  return {ErrorCode::kCorrupt,
          fmt::format("position {}: the model's output is not a number; its weights are damaged or "
                      "overflow this dtype",
                      position)};
}

// Why a row that should have drawn the token of `position` has none; nothing if it has one. Damaged
// weights are the server's fault. A constraint that the vocabulary cannot express is the request's.
std::optional<Error> problem_of(const DrawResult& result, int64_t position) {
  if (!std::isfinite(result.log_sum_exp)) return not_a_number(position);
  if (has_token(result)) return std::nullopt;
  return Error{ErrorCode::kUnsupported,
               fmt::format("position {}: the constraint allows no token of this model's vocabulary",
                           position)};
}

}  // namespace

Engine::Impl::Impl(const EngineConfig& config, std::unique_ptr<RankGroup> ranks,
                   std::unique_ptr<Runner> runner, std::vector<NamedDrafter> drafters,
                   std::shared_ptr<const DraftFilter> filter, std::unique_ptr<TierSetup> tiers)
    : config_(limit_drafts(config, runner->classes())),
      ranks_(std::move(ranks)),
      runner_(std::move(runner)),
      adapters_(*runner_),
      scheduler_(scheduler_config(config, *runner_)),
      speculator_(config_, info().vocabulary, std::move(drafters), step_estimate(info()),
                  std::move(filter)),
      pace_(config.prefill_step_ms, info().prefill_rows_max,
            runner_->classes().resume_alignment_tokens) {
  // Page tables grow only while sequences do, except where many sequences share a prefix.
  auto pages = as_size(info().total_tokens_max / info().page_size_tokens);
  steps_.resize(as_size(runner_->flights_max()));
  for (PlannedStep& step : steps_) {
    for (int c = 0; c < runner_->classes().count; ++c) {
      if (!runner_->classes()[c].paged()) continue;
      at(step.batch.tables, c).units.reserve(pages);
    }
  }
  if (tiers != nullptr) {
    scheduler_.use(std::make_unique<Tiers>(scheduler_.tree(), std::move(*tiers)));
  }
}

Result<SequenceId> Engine::Impl::submit(GenerateRequest request, TokenSink sink,
                                        std::vector<TokenId> recorded) {
  TRY(check_request(request, config_, info()));
  const GenerationOptions& options = request.options;
  if (!sink) return invalid_argument("the request has no sink for its events");
  auto s = std::make_unique<Sequence>();
  s->prompt_tokens = std::ssize(request.prompt);
  // Output ends at the context length, or when memory is full. One new token must fit.
  auto known_tokens = s->prompt_tokens + std::ssize(request.resume_tokens);
  int64_t most = std::max(info().total_tokens_max, known_tokens + 1);
  s->tokens_max =
      std::min({s->prompt_tokens + options.max_new_tokens, info().context_length_tokens, most});
  if (!scheduler_.fits_alone(s->tokens_max)) {
    return invalid_argument(
        "{} tokens of prompt and output do not fit into the {} tokens of memory", s->tokens_max,
        info().total_tokens_max);
  }
  AdapterUse adapter;
  if (!options.adapter.empty()) adapter = TRY(adapters_.find(options.adapter));
  TRY(check_queue(options.client));
  s->id = ++last_id_;
  s->name_space = {adapter ? adapter->info.digest : "", options.cache_salt, options.extra_key};
  s->adapter = std::move(adapter);
  s->arrived_ns = now_ns();
  s->queues_ns = s->arrived_ns - static_cast<int64_t>(options.age_s * 1e9);
  if (options.timeout_s > 0) {
    s->deadline_ns = s->arrived_ns + static_cast<int64_t>(options.timeout_s * 1e9);
  }
  if (options.prompt_logprobs_begin) s->prompt_logprobs_next = *options.prompt_logprobs_begin;
  s->tokens.reserve(as_size(s->tokens_max));
  s->tokens = request.prompt;
  if (request.sampling.has_penalties()) {
    s->counts.start(s->tokens, s->tokens_max, info().vocabulary, request.sampling.repeat_last_n);
  }
  if (request.sampling.has_dry()) s->dry.start(request.sampling, s->tokens_max);
  s->recorded = std::move(recorded);
  s->request = std::move(request);
  s->sink = std::move(sink);
  resume(*s);
  speculator_.start(*s, scheduler_.running() + 1);
  scheduler_.enqueue(std::move(s));
  return last_id_;
}

Status Engine::Impl::check_queue(const std::string& client) const {
  const FairShares& waiting = scheduler_.waiting_clients();
  if (waiting.admits(client, config_.queued_max)) return {};
  if (waiting.held_by(client) == waiting.total() || client.empty()) {
    return exhausted("{} requests are waiting, which is the limit", waiting.total());
  }
  return exhausted("{} requests are waiting, {} of them this client's; the limit is {}",
                   waiting.total(), waiting.held_by(client), config_.queued_max);
}

// As if the tokens to resume from had been drawn here before the sequence was retracted.
void Engine::Impl::resume(Sequence& s) const {
  for (TokenId token : s.request.resume_tokens) {
    s.tokens.push_back(token);
    if (s.request.sampling.has_penalties()) s.counts.add(token);
    if (s.request.constraint) s.request.constraint->accept(token);
  }
}

bool Engine::Impl::step() {
  CHECK(!stepping_, "a sink called step()");
  stepping_ = true;
  bool worked = trace_ ? traced_step() : step_once();
  stepping_ = false;
  return worked;
}

bool Engine::Impl::traced_step() {
  TraceEvent event{.category = "step", .name = "step", .begin_ns = trace_clock_ns()};
  int64_t steps = totals_.steps;
  if (!step_once()) return false;
  if (totals_.steps == steps) return true;  // it waited for a tier
  event.end_ns = trace_clock_ns();
  trace_->add(event);
  if (trace_->end_step()) trace({});
  return true;
}

void Engine::Impl::trace(std::shared_ptr<TraceLog> log) {
  runner_->trace(log.get());
  if (trace_) trace_->end();
  trace_ = std::move(log);
}

void Engine::Impl::end_trace(TraceLog& log) {
  if (trace_.get() == &log) trace({});
  log.end();
}

bool Engine::Impl::step_once() {
  int64_t began_ns = now_ns(), generated = totals_.generated_tokens;
  PlannedStep &now = steps_[0], &next = steps_[1];
  bool overlaps = now.launched, removes = now.launched && scheduler_.removal_due(now_ns());
  while (removes && now.launched) collect();
  if (!now.launched) {
    deliver_removed();
    plan(now);
    if (now.plan.spans.empty()) return idle() || removes;
    launch(now);
  }
  follow();
  if (info().overlap_schedule && may_launch_ahead()) {
    CHECK(!next.launched, "a step in flight would be planned");
    advance(now);
    plan(next);
    if (!next.plan.spans.empty()) launch(next);
    overlapped_steps_ += next.launched ? 1 : 0;
  }
  overlaps = overlaps || next.launched;
  MeasuredStep step = speculator_.shape(now.plan);
  double operations = overlaps ? 0 : prompt_operations(now.plan);
  collect();
  if (overlaps) {  // what such a step takes is not its own time
    speculator_.observe({});
    return true;
  }
  step.tokens = totals_.generated_tokens - generated;
  step.time_s = (now_ns() - began_ns) * 1e-9;
  speculator_.observe(step);
  if (operations > 0) scheduler_.tiers()->observe(operations, step.time_s);
  return true;
}

// True: a tier is loading something.
bool Engine::Impl::idle() {
  return scheduler_.tiers() != nullptr && scheduler_.tiers()->idle();
}

// The operations of a step that reads prompts and does little else; 0 for other steps, whose time
// says nothing about the cost of prompts.
double Engine::Impl::prompt_operations(const StepPlan& plan) const {
  constexpr int64_t kRowsMin = 32;
  if (scheduler_.tiers() == nullptr) return 0;
  int64_t rows = 0, others = 0;
  double operations = 0;
  for (const PlannedSpan& span : plan.spans) {
    bool prompt = span.first < span.sequence->prompt_tokens;
    (prompt ? rows : others) += span.count;
    if (prompt) operations += scheduler_.tiers()->operations(span.first, span.end());
  }
  return rows >= kRowsMin && others * 8 <= rows ? operations : 0;
}

int64_t Engine::Impl::prompt_rows(const StepPlan& plan) {
  int64_t rows = 0;
  for (const PlannedSpan& span : plan.spans) rows += span.sequence->decodes() ? 0 : span.count;
  return rows;
}

void Engine::Impl::collect() {
  PlannedStep& now = steps_[0];
  const DrawResults& results = wait();
  int64_t waited_from_ns = std::max(now.launched_ns, collected_ns_);  // it may be launched ahead
  collected_ns_ = now_ns();
  pace_.observe(now.prompt_rows, (collected_ns_ - waited_from_ns) * 1e-9);
  commit(results);
  now.launched = now.advanced = now.follows = false;
  std::rotate(steps_.begin(), steps_.begin() + 1, steps_.end());
  ++totals_.steps;
}

const DrawResults& Engine::Impl::wait() {
  TraceSpan span(trace_.get(), "step", "collect");
  return runner_->collect();
}

void Engine::Impl::deliver_removed() {
  while (auto s = scheduler_.remove_cancelled()) deliver(std::move(s), FinishReason::kCancelled);
  if (!scheduler_.has_deadlines()) return;
  int64_t now = now_ns();
  while (auto s = scheduler_.remove_expired(now)) deliver(std::move(s), FinishReason::kTimeout);
}

void Engine::Impl::deliver(std::unique_ptr<Sequence> s, FinishReason reason) {
  speculator_.end(*s);
  s->sink({.sequence = s->id, .position = s->length(), .finish = reason});
}

void Engine::Impl::plan(PlannedStep& step) {
  followed_ = 0;
  TraceSpan span_of_plan(trace_.get(), "step", "plan");
  scheduler_.limit_prefill(pace_.rows());
  scheduler_.plan(step.plan, runner_->in_flight() > 0);
  step.prompt_rows = prompt_rows(step.plan);
  for (const PlannedSpan& span : step.plan.spans) {
    Sequence& s = *span.sequence;
    if (s.queued_s == 0) s.queued_s = (now_ns() - s.arrived_ns) * 1e-9;
  }
  if (info().adapters_max > 0) count_running(step.plan);
  build_batch(step.plan, runner_->classes(), step.batch, step.uses);
  add_hidden_rows(step.plan, step.batch, step.hidden);
  build_draws(step.uses, info().vocabulary, step.draws);
}

void Engine::Impl::count_running(const StepPlan& plan) {
  for (const auto& before : running_adapters_) {
    if (AdapterUse adapter = before.lock()) adapter->running = 0;
  }
  running_adapters_.clear();
  for (const PlannedSpan& span : plan.spans) {
    if (span.sequence->adapter == nullptr) continue;
    ++span.sequence->adapter->running;
    running_adapters_.push_back(span.sequence->adapter);
  }
}

void Engine::Impl::launch(PlannedStep& step) {
  TraceSpan span(trace_.get(), "step", "launch");
  span.set_rows(step.batch.rows());
  int64_t drawn = runner_->in_flight() > 0 ? std::ssize(steps_[0].uses) : 0;
  Status valid =
      step.batch.validate(info().vocabulary, runner_->classes(), drawn, info().adapters_max);
  CHECK(valid.has_value(), "{}", valid.error().message);
  step.launched_ns = now_ns();
  runner_->launch(step.batch, step.draws);
  step.launched = true;
}

// Everything that a draw of the next step depends on, except logits, must be known before that step
// is planned.
bool Engine::Impl::may_launch_ahead() const {
  if (speculator_.reads_steps()) return false;
  return std::ranges::all_of(steps_[0].uses, [this](const LogitRowUse& use) {
    if (use.sequence == nullptr || !use.samples) return true;
    const GenerateRequest& request = use.sequence->request;
    return request.constraint == nullptr && !request.sampling.reads_tokens() &&
           !speculator_.may_draft(*use.sequence);
  });
}

void Engine::Impl::follow() {
  for (int64_t i = 0; i < runner_->in_flight(); ++i) {
    StepPlan& plan = at(steps_, i).plan;
    if (at(steps_, i).follows) Scheduler::locate(i > 0 ? &at(steps_, i - 1).plan : nullptr, plan);
  }
  while (runner_->in_flight() < config_.scheduler_steps && launch_following()) {
    ++followed_;
    ++overlapped_steps_;
  }
}

// A run has a limit, so that other drafters get their turn.
bool Engine::Impl::launch_following() {
  constexpr int64_t kFollowedMax = 64;
  int64_t unread = runner_->in_flight();
  const PlannedStep& last = at(steps_, unread - 1);
  PlannedStep& next = at(steps_, unread);
  if (followed_ == kFollowedMax || last.advanced) return false;
  std::span<const int64_t> drafts = speculator_.drafts_ahead(last.plan);
  if (drafts.empty() || !scheduler_.follow(last.plan, drafts, next.plan)) return false;
  TraceSpan span(trace_.get(), "step", "launch");
  Runner::DraftPasses& passes = next.passes;
  passes.drafts = std::ranges::max(drafts);
  build_following(next.plan, runner_->classes(), next.batch, next.uses);
  next.hidden.clear();
  build_following_draws(next.uses, info().vocabulary, next.draws);
  build_draft_rows(next.plan, passes.drafts, runner_->classes(), passes.row);
  build_draft_draws(next.plan, passes.drafts, runner_->predicted_vocabulary(), passes.draws);
  span.set_rows(next.batch.rows());
  runner_->launch_following(last.batch, next.batch, next.draws, passes);
  next.launched = next.follows = true;
  next.prompt_rows = 0;
  next.launched_ns = 0;
  return true;
}

void Engine::Impl::locate(PlannedStep& step) {
  Scheduler::locate(nullptr, step.plan);
  speculator_.take_drafts(step.plan, runner_->collected_drafts());
  size_t row = 0;
  for (const PlannedSpan& span : step.plan.spans) {
    for (int64_t i = 0; i < span.count; ++i, ++row) {
      LogitRowUse& use = step.uses[row];
      if (use.sequence == nullptr) continue;
      use.position = span.first + i;
      use.token = i == 0 ? use.sequence->tokens.back() : at(use.sequence->draft.tokens, i - 1);
    }
  }
}

void Engine::Impl::advance(PlannedStep& step) {
  for (size_t i = 0; i < step.uses.size(); ++i) {
    const LogitRowUse& use = step.uses[i];
    if (use.sequence == nullptr) continue;
    Sequence& s = *use.sequence;
    if (!use.samples) {
      s.prompt_logprobs_next = use.position + 2;
      continue;
    }
    s.tokens.push_back(Batch::kSampleOfRow - narrow<TokenId>(i));
    if (s.length() >= s.tokens_max) s.finish = FinishReason::kLength;
  }
  scheduler_.commit(step.plan);
  step.advanced = true;
}

// Tokens first, events later: what a sink does must not depend on where its row is in the step.
void Engine::Impl::accept(const DrawResults& results) {
  const PlannedStep& step = steps_[0];
  on_path_.resize(step.uses.size());
  for (size_t i = 0; i < step.uses.size(); ++i) {
    const LogitRowUse& use = step.uses[i];
    on_path_[i] = use.sequence != nullptr && (step.advanced || Speculator::follows(use));
    if (!on_path_[i] || !use.samples) continue;
    Sequence& s = *use.sequence;
    if (step.advanced) s.tokens.pop_back();  // the placeholder
    if (has_token(results.rows[i])) add_token(s, results.rows[i].token);
  }
}

void Engine::Impl::add_token(Sequence& s, TokenId token) {
  s.tokens.push_back(token);
  ++s.drawn;
  ++totals_.generated_tokens;
  if (s.request.sampling.has_penalties()) s.counts.add(token);
  if (s.request.constraint) s.request.constraint->accept(token);
  s.finish = finish_reason(s, token);
}

// The rows of a step that was launched before their tokens were known.
void Engine::Impl::know_tokens(PlannedStep& next, const DrawResults& results) {
  for (LogitRowUse& use : next.uses) {
    if (use.token < 0) {
      use.token = at(results.rows, Batch::kSampleOfRow - use.token).token;
    }
  }
}

void Engine::Impl::commit(const DrawResults& results) {
  TraceSpan span_of_commit(trace_.get(), "step", "commit");
  PlannedStep& step = steps_[0];
  remove_ended();
  if (step.follows) locate(step);
  accept(results);
  scheduler_.settle_branches(step.plan);
  bool followed = steps_[1].follows;
  if (steps_[1].launched && !followed) know_tokens(steps_[1], results);
  speculator_.settle(step.plan, scheduler_.running(), followed);
  if (!step.advanced) scheduler_.commit(step.plan);
  for (const PlannedSpan& span : step.plan.spans) {
    if (span.sequence == nullptr) continue;
    int64_t prompt_end = std::min(span.end(), span.sequence->prompt_tokens);
    totals_.prompt_tokens += std::max<int64_t>(0, prompt_end - span.first);
  }
  report_progress();
  for (size_t i = 0; i < step.uses.size(); ++i) {
    if (!on_path_[i] || step.uses[i].sequence == nullptr) continue;
    Sequence& s = *step.uses[i].sequence;
    if (auto problem = problem_of(results.rows[i], step.uses[i].position + 1)) {
      end(s, {.finish = FinishReason::kError, .error = *problem});
    } else {
      report(i, results);
    }
  }
  for (size_t i = 0; i < step.hidden.size(); ++i) {
    auto [sequence, position] = step.hidden[i];
    if (sequence == nullptr || pool(results, i)) continue;
    end(*sequence, {.finish = FinishReason::kError, .error = not_a_number(position)});
  }
  for (const PlannedSpan& span : step.plan.spans) {
    if (span.sequence != nullptr && span.sequence->request.options.max_new_tokens == 0 &&
        span.sequence->pending() == 0) {
      end_prompt(*span.sequence);
    }
  }
}

// Adds the hidden state of a row to its sequence's embedding. Positions come in ascending order,
// and again after the sequence was retracted, from the first one if all are summed. So sums round
// alike each time.
bool Engine::Impl::pool(const DrawResults& results, size_t row) {
  auto [sequence, position] = steps_[0].hidden[row];
  Sequence& s = *sequence;
  auto width = as_size(info().hidden);
  std::span<const float> state = results.hidden.subspan(row * width, width);
  if (!std::ranges::all_of(state, [](float value) { return std::isfinite(value); })) return false;
  bool first = position == 0 || s.request.options.pooling == Pooling::kLast;
  if (first) s.pooled.assign(width, 0);
  for (size_t i = 0; i < width; ++i) s.pooled[i] += state[i];
  return true;
}

// The last event of a request that wanted no more than its prompt computed.
void Engine::Impl::end_prompt(Sequence& s) {
  double count = s.request.options.pooling == Pooling::kMean ? s.prompt_tokens : 1;
  std::vector<float> embedding(s.pooled.size());
  for (size_t i = 0; i < embedding.size(); ++i) {
    embedding[i] = static_cast<float>(s.pooled[i] / count);
  }
  end(s, {.finish = FinishReason::kLength, .embedding = embedding});
}

// A retracted sequence computes its prompt again, which is no progress.
void Engine::Impl::report_progress() {
  for (const PlannedSpan& span : steps_[0].plan.spans) {
    if (span.sequence == nullptr || !span.sequence->request.options.prompt_progress) continue;
    Sequence& s = *span.sequence;
    int64_t computed = std::min(span.end(), s.prompt_tokens);
    if (span.first >= s.prompt_tokens || computed <= s.progress_tokens) continue;
    s.progress_tokens = computed;
    TokenEvent event{.sequence = s.id, .position = computed, .from_prompt = true};
    tell_usage(s, event);
    s.sink(event);
  }
}

void Engine::Impl::report(size_t row, const DrawResults& results) {
  const LogitRowUse& use = steps_[0].uses[row];
  const DrawResult& result = results.rows[row];
  const DrawRow& drawn = steps_[0].draws.rows[row];
  Sequence& s = *use.sequence;
  auto tops = std::span(results.tops).subspan(as_size(drawn.tops_begin));
  TokenEvent event{.sequence = s.id,
                   .position = use.position + 1,
                   .has_token = true,
                   .from_prompt = !use.samples,
                   .token = result.token,
                   .logprob = result.logprob,
                   .top = tops.first(as_size(result.top_count)),
                   .chosen = slice(tops, drawn.top_count, drawn.chosen.count)};
  if (event.from_prompt) {
    s.prompt_logprobs_next = std::max(s.prompt_logprobs_next, use.position + 2);
    return s.sink(event);
  }
  event.drafted = event.position < s.draft.accepted_end;
  tell_usage(s, event);
  if (event.position + 1 == s.length()) event.finish = s.finish;
  if (event.finish == FinishReason::kStop) event.matched_stop = result.token;
  if (event.finish == FinishReason::kNone) return s.sink(event);
  end(s, std::move(event));
}

FinishReason Engine::Impl::finish_reason(const Sequence& s, TokenId token) const {
  const std::vector<TokenId>& stops = s.request.options.stop_token_ids;
  if (std::ranges::find(stops, token) != stops.end()) return FinishReason::kStop;
  bool full = std::ssize(s.tokens) >= s.tokens_max;
  return full ? FinishReason::kLength : FinishReason::kNone;
}

void Engine::Impl::tell_usage(const Sequence& s, TokenEvent& event) {
  event.cached_tokens = s.cached_tokens;
  event.restored_tokens = s.restored_tokens;
  event.queued_s = s.queued_s;
  event.drafts = s.draft.drafts;
  event.draft_tokens = s.draft.proposed;
}

// Delivers the sequence's last event. Its pages are freed before the sink is called, unless the
// step in flight has rows of it.
void Engine::Impl::end(Sequence& s, TokenEvent event) {
  int64_t in_flight = 0;  // the last step that has rows of it, counted from this one
  for (int64_t i = 0; i < std::ssize(steps_); ++i) {
    if (forget(at(steps_, i), s)) in_flight = i;
  }
  event.sequence = s.id;
  tell_usage(s, event);
  speculator_.end(s);
  if (!event.has_token) event.position = std::ssize(s.tokens);
  if (in_flight == 0) {
    std::unique_ptr<Sequence> ended = scheduler_.remove(&s);
    return ended->sink(event);
  }
  s.finish = event.finish;
  ended_.push_back({&s, in_flight});
  s.sink(event);
}

// Called once for each step that is collected.
void Engine::Impl::remove_ended() {
  for (Ended& ended : ended_) {
    if (--ended.steps == 0) scheduler_.remove(ended.sequence);
  }
  std::erase_if(ended_, [](const Ended& ended) { return ended.steps == 0; });
}

// Removes the sequence's rows from the step, if it was launched. Returns whether it had any.
bool Engine::Impl::forget(PlannedStep& step, const Sequence& s) {
  if (!step.launched) return false;
  for (LogitRowUse& use : step.uses) {
    if (use.sequence == &s) use.sequence = nullptr;
  }
  for (HiddenRowUse& use : step.hidden) {
    if (use.sequence == &s) use.sequence = nullptr;
  }
  bool found = false;
  for (PlannedSpan& span : step.plan.spans) {
    if (span.sequence != &s) continue;
    span.sequence = nullptr;
    found = true;
  }
  for (PlannedBranch& branch : step.plan.branches) {
    if (branch.sequence == &s) branch.sequence = nullptr;
  }
  return found;
}

EngineStats Engine::Impl::stats() const {
  EngineStats stats = totals_;
  stats.running = scheduler_.running() - std::ssize(ended_);
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
  if (scheduler_.tiers() != nullptr) stats.storage = scheduler_.tiers()->stats();
  speculator_.report(stats);
  return stats;
}

}  // namespace banyan
