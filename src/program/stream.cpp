#include "program/stream.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/quote.h"
#include "base/random.h"
#include "base/signed.h"
#include "program/choices.h"

namespace banyan {
namespace {

// Shorter prefixes cost the branches less than computing them first would.
constexpr size_t kHintBytesMin = 64;

uint64_t hash64(uint64_t value) {
  auto words = philox(value, 0, 0);
  return uint64_t{words[0]} << 32 | words[1];
}

Error closed_error() {
  return {ErrorCode::kCancelled, "the interpreter of this state is gone"};
}

// The name of the variable that a primitive produces; null for none.
const std::string* variable_of(const Primitive& primitive) {
  if (const auto* gen = std::get_if<GenPart>(&primitive.what)) return &gen->name;
  if (const auto* select = std::get_if<SelectPart>(&primitive.what)) return &select->name;
  if (const auto* score = std::get_if<ScorePart>(&primitive.what)) return &score->name;
  return nullptr;
}

}  // namespace

Error cancelled_error() {
  return {ErrorCode::kCancelled, "the program was cancelled"};
}

CallUsage& CallUsage::operator+=(const CallUsage& more) {
  calls += more.calls;
  prompt_tokens += more.prompt_tokens;
  cached_tokens += more.cached_tokens;
  completion_tokens += more.completion_tokens;
  calls_saved += more.calls_saved;
  prompt_tokens_saved += more.prompt_tokens_saved;
  return *this;
}

void Instance::watch_stop() {
  if (!options.stop.stop_possible()) return;
  stop_callback_.emplace(options.stop, [weak = weak_from_this()] {
    if (auto instance = weak.lock()) instance->cancel();
  });
}

void Instance::cancel() {
  std::vector<Backend::Cancel> running;
  {
    std::lock_guard lock(mutex);
    cancelled = true;
    begin_busy();  // keeps the instance busy, and so the backend alive, until these calls return
    for (const auto& [stream, cancel] : calls) running.push_back(cancel);
  }
  for (const Backend::Cancel& cancel : running) cancel();
  std::lock_guard lock(mutex);
  end_busy();
}

double Instance::age_s() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
}

void Instance::end_busy() {
  --busy;
  if (!over()) return;
  idle.notify_all();
  if (on_over)
    worker.post([self = shared_from_this(), end = std::exchange(on_over, {})] { end(); });
}

void Instance::end_body() {
  body_over = true;
  body = nullptr;
  ++busy;
  end_busy();
}

Stream::Stream(std::shared_ptr<Instance> instance)
    : instance_(std::move(instance)), transcript_(instance_->backend) {}

// --- building -------------------------------------------------------------------------------

void Stream::add(const std::vector<std::shared_ptr<const Primitive>>& primitives) {
  std::lock_guard lock(instance_->mutex);
  keeps_prefix_ = true;
  for (const auto& primitive : primitives) {
    const std::string* name = variable_of(*primitive);
    push({primitive, name != nullptr ? declare(*name) : nullptr});
  }
}

void Stream::set(std::string name, std::string value) {
  std::lock_guard lock(instance_->mutex);
  push({SetVariable{std::move(value)}, declare(name)});
}

std::vector<std::shared_ptr<Stream>> Stream::fork(int count) {
  std::lock_guard lock(instance_->mutex);
  std::vector<std::shared_ptr<Stream>> branches;
  for (int i = 0; i < count; ++i) {
    auto branch = std::make_shared<Stream>(instance_);
    branch->variables_ = variables_;
    uint64_t ordinal = forks_ << 32 | narrow<uint32_t>(i + 1);
    branch->place_ = hash64(place_ ^ ordinal);
    branch->held_ = branch->busy_ = true;
    instance_->begin_busy();
    branches.push_back(std::move(branch));
  }
  ++forks_;
  push({ForkPoint{branches}, nullptr});
  return branches;
}

void Stream::join(const std::vector<std::shared_ptr<Stream>>& branches) {
  std::lock_guard lock(instance_->mutex);
  for (size_t i = 0; i < branches.size(); ++i) {
    for (const auto& [name, variable] : branches[i]->variables_) {
      auto own = variables_.find(name);
      if (own != variables_.end() && own->second == variable) continue;  // inherited at the fork
      variables_[fmt::format("{}[{}]", name, i)] = variable;
    }
  }
}

void Stream::release() {
  std::shared_ptr<const void> hold;  // destroyed without the mutex
  std::lock_guard lock(instance_->mutex);
  keeps_prefix_ = false;
  if (busy_) return;
  hold = std::exchange(hold_, nullptr);
  speculation_.forget();
}

std::shared_ptr<Variable> Stream::declare(const std::string& name) {
  return variables_[name] = std::make_shared<Variable>();
}

void Stream::push(Operation operation) {
  if (instance_->closed) {
    fail(closed_error());
    drop(operation);
    return;
  }
  pending_.push_back(std::move(operation));
  if (busy_) return;
  busy_ = true;
  instance_->begin_busy();
  schedule();
}

void Stream::schedule() {
  instance_->worker.post([self = shared_from_this()] { self->turn(); });
}

// --- execution ------------------------------------------------------------------------------

void Stream::turn() {
  std::shared_ptr<const void> hold;  // destroyed without the mutex
  std::unique_lock lock(instance_->mutex);
  while (!pending_.empty()) {
    current_ = std::move(pending_.front());
    pending_.pop_front();
    if (instance_->cancelled) fail(cancelled_error());
    if (error_) {
      drop(current_);
      continue;
    }
    lock.unlock();
    Step step = Step::kNext;
    Status status = guard([&] { return execute(step); });
    if (status && step == Step::kCalling) return;
    lock.lock();
    if (status) continue;
    fail(status.error());
    drop(current_);
  }
  current_ = {};
  if (!keeps_prefix_) {
    hold = std::exchange(hold_, nullptr);
    speculation_.forget();
  }
  busy_ = false;
  idle_.notify_all();
  instance_->end_busy();
}

// Marks an operation that will not be executed. Requires the mutex.
void Stream::drop(const Operation& operation) {
  if (operation.variable && !operation.variable->done) {
    operation.variable->error = error_;
    operation.variable->done = true;
    operation.variable->changed.notify_all();
  }
  if (const auto* point = std::get_if<ForkPoint>(&operation.what)) release_branches(*point);
}

void Stream::fail(Error error) {
  if (!error_) error_ = std::move(error);
}

Status Stream::execute(Step& step) {
  if (const auto* primitive = std::get_if<std::shared_ptr<const Primitive>>(&current_.what)) {
    return execute_primitive(**primitive, step);
  }
  if (const auto* point = std::get_if<ForkPoint>(&current_.what)) return fork_at(*point, step);
  if (const auto* value = std::get_if<SetVariable>(&current_.what)) {
    finish(value->value, {});
    return {};
  }
  finish(TRY(transcript_.text()), {});
  return {};
}

Status Stream::execute_primitive(const Primitive& primitive, Step& step) {
  if (const auto* text = std::get_if<TextPart>(&primitive.what)) {
    speculation_.pass(text->text);
    return transcript_.append(text->text);
  }
  if (const auto* begin = std::get_if<RoleBegin>(&primitive.what)) {
    speculation_.forget();
    return transcript_.begin(begin->role);
  }
  if (std::holds_alternative<RoleEnd>(primitive.what)) return transcript_.end();
  if (const auto* media = std::get_if<MediaPart>(&primitive.what)) {
    return unsupported("{} {}: programs take text only; no model here sees {}s yet", media->kind,
                       quote(media->path), media->kind);
  }
  step = Step::kCalling;
  if (const auto* gen = std::get_if<GenPart>(&primitive.what)) return call_gen(*gen, step);
  if (const auto* select = std::get_if<SelectPart>(&primitive.what)) return call_select(*select);
  return call_score(std::get<ScorePart>(primitive.what));
}

// Starts a call. The call may end before this returns, but what its end posts runs on this worker,
// and so only afterwards.
template <class Start>
void Stream::begin_call(Start start) {
  Backend::Cancel cancel = start();
  std::unique_lock lock(instance_->mutex);
  instance_->calls[this] = cancel;
  bool late = instance_->cancelled;
  lock.unlock();
  if (late) cancel();
}

// Wraps the end of a call: on the worker, `then` takes the result, and the turn continues.
template <class T>
Backend::Done<T> Stream::resuming(std::function<Status(T&)> then) {
  return [self = shared_from_this(), then = std::move(then)](Result<T> result) {
    self->instance_->worker.post([self, then, result = std::move(result)]() mutable {
      std::unique_lock lock(self->instance_->mutex);
      self->instance_->calls.erase(self.get());
      if (self->instance_->cancelled) result = std::unexpected(cancelled_error());
      lock.unlock();
      Status status = result ? guard([&] { return then(*result); })
                             : Status(std::unexpected(std::move(result).error()));
      if (!status) {
        lock.lock();
        self->fail(status.error());
        self->drop(self->current_);
        lock.unlock();
      }
      if (status && std::exchange(self->calling_again_, false)) return;
      self->turn();
    });
  };
}

SamplingParams Stream::seeded(SamplingParams sampling) const {
  uint64_t place = place_ ^ instance_->options.sample;
  if (place != 0) sampling.seed = hash64(sampling.seed ^ place);
  return sampling;
}

Status Stream::call_gen(const GenPart& part, Step& step) {
  TRY(check_gen(part.options));
  GenCall call{.prompt = {},
               .options = part.options,
               .sampling = part.sampling,
               .hold = instance_->keep_prefixes};
  std::optional<SamplingParams>& sampling = call.sampling;
  if (!sampling) sampling = instance_->options.sampling;
  if (!sampling) sampling = instance_->backend.default_sampling();
  if (sampling) sampling = seeded(*sampling);
  int64_t further = instance_->options.speculation_tokens;
  if (!instance_->backend.may_speculate() || !Speculation::fits(call)) further = 0;
  if (further > 0) {
    if (std::optional<GenResult> served = speculation_.serve(call)) {
      step = Step::kNext;
      return end_gen(part.name, *served);
    }
  }
  speculation_.forget();
  call.prompt = TRY(prompt());
  computed_bytes_ = transcript_.bytes();
  // A started answer that the API cannot continue can only be generated again.
  bool begun = !call.prompt.answer.empty() && !instance_->backend.continues_answers();
  if (further > 0 && (instance_->ledger->allows(further) || begun)) {
    return call_further(std::move(call), part);
  }
  generate(std::move(call), part, instance_->options.stream || instance_->options.on_text);
  return {};
}

// Makes a call that runs past its stop. If the result does not start with the required text, a
// regular call follows.
Status Stream::call_further(GenCall call, const GenPart& part) {
  GenCall longer = Speculation::longer(call, instance_->options.speculation_tokens);
  // An API that cannot continue a started answer must generate it again.
  std::string begun;
  if (!instance_->backend.continues_answers()) begun = std::exchange(longer.prompt.answer, {});
  using Then = std::function<Status(GenResult&)>;
  Then then = [this, call, &part, begun](GenResult& result) -> Status {
    if (!result.text.starts_with(begun)) {
      return unsupported(
          "{} cannot continue a partial assistant message, and the model's answer does not start "
          "with {}",
          instance_->backend.name(), quote(begun));
    }
    CallInfo info = result.info;
    info.logprobs.clear();
    speculation_.keep(std::move(result), call, begun.size());
    if (std::optional<GenResult> served = speculation_.serve(call)) {
      speculation_.enter(instance_->ledger);
      info.finish = served->info.finish;
      info.matched_stop = served->info.matched_stop;
      served->info = std::move(info);
      return end_gen(part.name, *served);
    }
    calling_again_ = true;
    instance_->ledger->in_vain(info.usage);
    generate(call, part, false, info.usage);
    return {};
  };
  auto done = resuming<GenResult>(std::move(then));
  begin_call([&] { return instance_->backend.generate(std::move(longer), {}, std::move(done)); });
  return {};
}

void Stream::generate(GenCall call, const GenPart& part, bool pieces, CallUsage before) {
  Backend::PieceSink piece;
  if (pieces) {
    piece = [self = shared_from_this(), &part](std::string_view text) {
      self->grow(part.name, *self->current_.variable, text);
    };
  }
  auto done = resuming<GenResult>([this, &part, before](GenResult& result) {
    result.info.usage += before;
    return end_gen(part.name, result);
  });
  begin_call([&] {
    return instance_->backend.generate(std::move(call), std::move(piece), std::move(done));
  });
}

Status Stream::end_gen(const std::string& name, GenResult& result) {
  TRY(transcript_.append(result.text));
  computed_bytes_ = transcript_.bytes();
  if (result.hold) hold_ = std::move(result.hold);
  Variable& variable = *current_.variable;
  size_t shown = variable.text.size();  // only this turn appends to it now
  if (shown < result.text.size()) grow(name, variable, std::string_view(result.text).substr(shown));
  finish(std::move(result.text), std::move(result.info));
  return {};
}

Result<Prompt> Stream::prompt() {
  Prompt prompt = TRY(transcript_.prompt());
  prompt.age_s = instance_->age_s();
  return prompt;
}

Status Stream::call_select(const SelectPart& part) {
  if (part.choices.empty()) {
    return invalid_argument("select {}: there are no choices", quote(part.name));
  }
  for (const std::string& choice : part.choices) {
    if (choice.empty()) return invalid_argument("select {}: a choice is empty", quote(part.name));
  }
  ScoreCall call{.prompt = TRY(prompt()),
                 .texts = part.choices,
                 .unconditional = part.options.method == ChoiceMethod::kUnconditionalNormalized};
  auto done = resuming<ScoreResult>([this, &part](ScoreResult& result) -> Status {
    Decision decision = decide(result.texts, part.options.method);
    CallInfo info{.finish = FinishReason::kStop, .usage = result.usage};
    for (size_t i = 0; i < part.choices.size(); ++i) {
      info.choices.push_back(
          {part.choices[i], decision.weights[i], std::move(result.texts[i].tokens)});
    }
    const std::string& best = part.choices[decision.best];
    speculation_.pass(best);
    TRY(transcript_.append(best));
    computed_bytes_ = transcript_.bytes();
    grow(part.name, *current_.variable, best);
    finish(best, std::move(info));
    return {};
  });
  begin_call([&] { return instance_->backend.score(std::move(call), std::move(done)); });
  return {};
}

Status Stream::call_score(const ScorePart& part) {
  if (part.text.empty()) return invalid_argument("score {}: the text is empty", quote(part.name));
  ScoreCall call{.prompt = TRY(prompt()), .texts = {part.text}};
  auto done = resuming<ScoreResult>([this](ScoreResult& result) -> Status {
    double sum = 0;
    CallInfo info{.finish = FinishReason::kStop, .usage = result.usage};
    for (const TokenLogprob& token : result.texts.front().tokens) {
      sum += token.logprob;
      info.logprobs.push_back({.token = token.token, .logprob = token.logprob, .top = {}});
    }
    finish(fmt::format("{}", sum), std::move(info));
    return {};
  });
  begin_call([&] { return instance_->backend.score(std::move(call), std::move(done)); });
  return {};
}

Status Stream::fork_at(const ForkPoint& point, Step& step) {
  bool hint = instance_->fork_hints && point.branches.size() > 1 &&
              instance_->backend.can_prefill() &&
              transcript_.bytes() >= computed_bytes_ + kHintBytesMin;
  // Between messages there is no prompt yet: it depends on what a branch adds first.
  Result<Prompt> prefix = hint ? transcript_.prefix() : Prompt{};
  if (prefix) prefix->age_s = instance_->age_s();
  if (!hint || !prefix) {
    std::lock_guard lock(instance_->mutex);
    release_branches(point);
    return {};
  }
  step = Step::kCalling;
  computed_bytes_ = transcript_.bytes();
  auto then = [this, point](CallUsage& usage) -> Status {
    std::lock_guard lock(instance_->mutex);
    instance_->usage += usage;
    release_branches(point);
    return {};
  };
  auto done = resuming<CallUsage>(std::move(then));
  begin_call([&] { return instance_->backend.prefill(*std::move(prefix), std::move(done)); });
  return {};
}

// Releases the branches to continue from here. Requires the mutex.
void Stream::release_branches(const ForkPoint& point) {
  for (const auto& branch : point.branches) {
    if (!branch->held_) continue;
    branch->transcript_ = transcript_;
    branch->speculation_ = speculation_;
    branch->computed_bytes_ = computed_bytes_;
    branch->hold_ = hold_;
    branch->error_ = error_;
    branch->held_ = false;
    branch->schedule();
  }
}

void Stream::grow(const std::string& name, Variable& variable, std::string_view piece) {
  if (piece.empty()) return;
  const auto& on_text = instance_->options.on_text;
  if (on_text) {
    std::lock_guard lock(instance_->text_mutex);
    on_text(name, piece);
  }
  std::lock_guard lock(instance_->mutex);
  variable.text += piece;
  variable.changed.notify_all();
}

// Completes the current operation's variable.
void Stream::finish(std::string text, CallInfo info) {
  std::lock_guard lock(instance_->mutex);
  instance_->usage += info.usage;
  Variable& variable = *current_.variable;
  variable.text = std::move(text);
  variable.info = std::move(info);
  variable.done = true;
  variable.changed.notify_all();
}

// --- reading --------------------------------------------------------------------------------

Result<std::shared_ptr<Variable>> Stream::find(std::string_view name) const {
  auto found = variables_.find(name);
  if (found != variables_.end()) return found->second;
  std::string names;
  for (const auto& [known, variable] : variables_) names += (names.empty() ? "" : ", ") + known;
  return not_found("no variable {}; this state has {}", quote(name),
                   names.empty() ? "none" : names);
}

Result<std::string> Stream::get(std::string_view name) {
  std::unique_lock lock(instance_->mutex);
  std::shared_ptr<Variable> variable = TRY(find(name));
  while (!variable->done) variable->changed.wait(lock);
  if (variable->error) return std::unexpected(*variable->error);
  return variable->text;
}

Result<CallInfo> Stream::info(std::string_view name) {
  std::unique_lock lock(instance_->mutex);
  std::shared_ptr<Variable> variable = TRY(find(name));
  while (!variable->done) variable->changed.wait(lock);
  if (variable->error) return std::unexpected(*variable->error);
  return variable->info;
}

Result<std::string> Stream::read_more(std::string_view name, size_t* offset) {
  std::unique_lock lock(instance_->mutex);
  std::shared_ptr<Variable> variable = TRY(find(name));
  while (!variable->done && variable->text.size() <= *offset) variable->changed.wait(lock);
  if (variable->text.size() <= *offset) {
    if (variable->error) return std::unexpected(*variable->error);
    return std::string();
  }
  std::string more = variable->text.substr(*offset);
  *offset = variable->text.size();
  return more;
}

Status Stream::wait() {
  std::unique_lock lock(instance_->mutex);
  bool own_body = instance_->body != nullptr && instance_->body == Fiber::current();
  while (true) {
    if (busy_) {
      idle_.wait(lock);
    } else if (!own_body && !instance_->body_over) {
      instance_->idle.wait(lock);
    } else {
      break;
    }
  }
  if (error_) return std::unexpected(*error_);
  return {};
}

Result<std::string> Stream::text() {
  if (Fiber::current() == nullptr) {
    TRY(wait());
    std::lock_guard lock(instance_->mutex);
    if (instance_->closed) return std::unexpected(closed_error());
    return transcript_.text();
  }
  // Rendered by a turn: a chat template may need more stack than a fiber has.
  std::unique_lock lock(instance_->mutex);
  auto variable = std::make_shared<Variable>();
  push({ReadText{}, variable});
  while (!variable->done) variable->changed.wait(lock);
  if (variable->error) return std::unexpected(*variable->error);
  return variable->text;
}

Result<std::vector<ChatMessage>> Stream::messages() {
  TRY(wait());
  std::lock_guard lock(instance_->mutex);
  return transcript_.messages();
}

}  // namespace banyan
