#include "server/prefill/prefill_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/signed.h"
#include "client/serving_api.h"
#include "server/worker/states_wire.h"

namespace banyan {
namespace {

constexpr int kAttemptsMax = 2;  // workers that a prompt is given to
constexpr int kFailuresMax = 3;  // of requests for states, in a row
// A worker's engine answers between two steps, so one request should cover what a step computes.
constexpr int64_t kFetchBytes = kStatesBytesMax;
constexpr size_t kRefusalBytesMax = 4096;
// How long a worker may be away. If it has computed everything by then, nothing else tells.
constexpr int kLostTicksMax = std::chrono::seconds(2) / PrefillRun::kTick;
// How long nothing may come from it, though it lives: while its engine takes no step, which a
// router calls a stall after 60 s if there are requests, and while it takes steps with other
// prompts.
constexpr int kStillTicksMax = std::chrono::seconds(90) / PrefillRun::kTick;
constexpr int kSilentTicksMax = std::chrono::minutes(10) / PrefillRun::kTick;

}  // namespace

PrefillRun::PrefillRun(PrefillContext& context, std::shared_ptr<const PrefillPrompt> prompt)
    : context_(context), prompt_(std::move(prompt)) {}

// ---- The request --------------------------------------------------------------------------------

void PrefillRun::start() {
  ++attempts_;
  failures_ = lost_ticks_ = silent_ticks_ = still_ticks_ = 0;
  place_.clear();
  std::vector<GenerateRequest> requests(1);
  requests[0].prompt = prompt_->tokens;
  requests[0].options.max_new_tokens = 0;
  requests[0].options.prompt_progress = true;
  requests[0].options.priority = prompt_->priority;
  requests[0].options.adapter = prompt_->name_space.adapter;
  requests[0].options.cache_salt = prompt_->name_space.salt;
  requests[0].options.extra_key = prompt_->name_space.extra_key;
  std::weak_ptr<PrefillRun> weak = weak_from_this();
  SubmissionSinks sinks;
  sinks.event = [weak](size_t, const TokenEvent& event) {
    if (auto self = weak.lock()) self->take(event);
  };
  sinks.rejected = [weak](const Error& error) {
    if (auto self = weak.lock()) self->lose(error);
  };
  auto submission = context_.workers.submit(std::move(requests), std::move(sinks));
  if (!submission) {
    context_.failed("too many prompts wait for a prefill worker");
    return fail(TierOutcome::kFailed);
  }
  submission_ = *std::move(submission);
}

void PrefillRun::take(const TokenEvent& event) {
  if (over_) return;
  silent_ticks_ = still_ticks_ = 0;
  (void)worker();
  if (event.is_progress()) {
    computed_ = std::max(computed_, event.position);
  } else if (event.finish == FinishReason::kLength || event.finish == FinishReason::kStop) {
    computed_ = std::ssize(prompt_->tokens);
  } else if (event.finish != FinishReason::kNone) {
    return lose(event.error);
  }
  fetch();
}

void PrefillRun::lose(const Error& error) {
  if (over_) return;
  bool had_worker = submission_ != nullptr && !submission_->place(0).empty();
  bool exhausted = error.code == ErrorCode::kExhausted;
  if (had_worker && exhausted) return try_another("the worker that computed it is lost");
  context_.failed(exhausted ? "no prefill worker has had room for a second" : error.message);
  fail(TierOutcome::kFailed);
}

// The worker gets no prompts until it has answered again.
void PrefillRun::try_another(const std::string& why) {
  hang_up();
  if (auto failed = worker()) failed->suspect(why);
  if (attempts_ < kAttemptsMax) {
    if (submission_ != nullptr) context_.workers.abandon(submission_, std::nullopt);
    return start();
  }
  context_.failed(why);
  fail(TierOutcome::kFailed);
}

void PrefillRun::fail(TierOutcome outcome) {
  over_ = true;
  hang_up();
  wanted_.clear();
  while (!reads_.empty()) end(reads_.begin(), outcome);
}

void PrefillRun::close() {
  auto self = shared_from_this();  // a callback may hold the last reference
  if (auto submission = std::exchange(submission_, nullptr)) {
    context_.workers.abandon(submission, std::nullopt);
  }
  fail(TierOutcome::kFailed);
}

void PrefillRun::hang_up() {
  if (uint64_t fetch = std::exchange(fetch_, 0); fetch != 0) {
    asked_->client().cancel(fetch, "nobody waits for it");
  }
  records_.reset();
}

// ---- States -------------------------------------------------------------------------------------

void PrefillRun::read(const TierJob& job) {
  auto page = prompt_->pages.find(job.record.key.page);
  if (over_ || page == prompt_->pages.end()) {
    return context_.finish({.id = job.id,
                            .operation = TierOperation::kRead,
                            .outcome = over_ ? TierOutcome::kFailed : TierOutcome::kAbsent});
  }
  int unit_class = job.record.key.unit_class;
  reads_[{page->second, unit_class}] = {
      .id = job.id,
      .place = {.shape = record_shape({}, context_.states, unit_class),
                .record = job.record,
                .pieces = job.pieces}};
  fetch();
}

void PrefillRun::tick() {
  pauses_ = false;
  if (over_) return;
  if (std::string why = why_idle(); !why.empty()) return try_another(why);
  if (fetch_ != 0) {
    if (asked_->info() == nullptr) asked_->client().cancel(fetch_, "the worker does not answer");
    return;
  }
  lost_ticks_ = is_lost() ? lost_ticks_ + 1 : 0;
  if (lost_ticks_ > kLostTicksMax) return try_another("the worker that computed it is gone");
  fetch();
}

// Not empty: nothing has come from the worker for too long.
std::string PrefillRun::why_idle() {
  std::shared_ptr<RemoteWorker> now = worker();
  const WorkerInfo* info = now != nullptr ? now->info() : nullptr;
  bool works = info != nullptr && std::exchange(progress_, info->progress) != info->progress;
  silent_ticks_ = reads_.empty() ? 0 : silent_ticks_ + 1;
  still_ticks_ = reads_.empty() || works ? 0 : still_ticks_ + 1;
  if (still_ticks_ > kStillTicksMax) return "the worker has sent nothing for 90 s";
  if (silent_ticks_ > kSilentTicksMax) return "the worker has sent nothing for 10 minutes";
  return "";
}

// Another process may answer at its address.
bool PrefillRun::is_lost() {
  std::shared_ptr<RemoteWorker> now = worker();
  return !place_.empty() && (now == nullptr || now->info() == nullptr);
}

// Whoever has the request now: one that drains passes it on, and then everything is computed again.
std::shared_ptr<RemoteWorker> PrefillRun::worker() {
  std::string_view place = submission_ != nullptr ? submission_->place(0) : "";
  if (place_ != place) computed_ = 0;
  place_ = place;
  for (const auto& worker : context_.workers.workers()) {
    if (worker != nullptr && !place.empty() && worker->name() == place) return worker;
  }
  return nullptr;
}

// Asks for the next units that are computed, if no request is in progress.
void PrefillRun::fetch() {
  if (over_ || fetch_ != 0 || pauses_) return;
  asked_ = worker();
  if (asked_ == nullptr || asked_->info() == nullptr) return;
  std::vector<RestoreUnit> units = choose();
  if (!units.empty()) send(units);
}

std::vector<RestoreUnit> PrefillRun::choose() {
  std::vector<RestoreUnit> units;
  int64_t page_tokens = context_.states.classes.page_size_tokens, bytes = 0;
  wanted_.clear();
  for (const auto& [key, read] : reads_) {
    auto [page, unit_class] = key;
    bool computed = (page + 1) * page_tokens <= computed_;
    int64_t more = read.place.shape.payload_bytes;
    if (!computed || (bytes > 0 && bytes + more > kFetchBytes)) break;
    bytes += more;
    wanted_.push_back(key);
    units.push_back({.page = page, .unit_class = unit_class});
  }
  return units;
}

void PrefillRun::send(const std::vector<RestoreUnit>& units) {
  StatesRequest request{.state_digest = context_.states.digest.value().hex(),
                        .units = {.name_space = prompt_->name_space, .units = units}};
  int64_t tokens = (units.back().page + 1) * context_.states.classes.page_size_tokens;
  request.units.tokens.assign(prompt_->tokens.begin(), prompt_->tokens.begin() + tokens);
  records_.emplace(RecordReader::Sinks{
      .place = [this](const TierKey& key) -> const RecordReader::Place* {
        auto read = find(key);
        return read == reads_.end() ? nullptr : &read->second.place;
      },
      .end = [this](const TierKey& key, TierOutcome outcome) { end(find(key), outcome); }});
  refusal_.clear();
  std::weak_ptr<PrefillRun> weak = weak_from_this();
  auto current = [weak, number = ++fetches_]() -> std::shared_ptr<PrefillRun> {
    auto self = weak.lock();
    bool awaited = self != nullptr && self->fetches_ == number && self->fetch_ != 0;
    return awaited ? self : nullptr;
  };
  ClientSinks sinks;
  sinks.body = [current](int status, std::string_view bytes) {
    if (auto self = current()) self->take_bytes(status, bytes);
  };
  sinks.end = [current](int status, const Status& outcome) {
    if (auto self = current()) self->fetched(status, outcome);
  };
  fetch_ = asked_->client().send({.path = "/worker/states",
                                  .body = write_states_request(request),
                                  .content_type = kWireRequestType},
                                 std::move(sinks));
}

void PrefillRun::take_bytes(int http_status, std::string_view bytes) {
  silent_ticks_ = still_ticks_ = 0;
  if (http_status != 200) {
    refusal_ += bytes.substr(0, kRefusalBytesMax - std::min(kRefusalBytesMax, refusal_.size()));
    return;
  }
  if (!records_) return;
  if (Status fed = records_->feed(bytes); !fed) {
    refusal_ = fed.error().message;
    records_.reset();  // the rest of this answer is of no use
  }
}

void PrefillRun::fetched(int http_status, const Status& outcome) {
  fetch_ = 0;
  bool whole = outcome && http_status == 200 && records_ && records_->between_records();
  records_.reset();
  if (whole) {
    failures_ = 0;
    for (const auto& key : std::exchange(wanted_, {})) {  // what did not come
      if (auto read = reads_.find(key); read != reads_.end()) end(read, TierOutcome::kAbsent);
    }
    return fetch();
  }
  std::string why = fmt::format("{}: {}", asked_->url(),
                                outcome ? error_message(refusal_) : outcome.error().message);
  bool refused = outcome && http_status >= 400 && http_status < 500;
  pauses_ = true;
  if (refused || ++failures_ >= kFailuresMax) try_another(why);
}

PrefillRun::Reads::iterator PrefillRun::find(const TierKey& key) {
  auto page = prompt_->pages.find(key.page);
  return page == prompt_->pages.end() ? reads_.end() : reads_.find({page->second, key.unit_class});
}

void PrefillRun::end(Reads::iterator read, TierOutcome outcome) {
  if (read == reads_.end()) return;
  TierDone done{.id = read->second.id, .operation = TierOperation::kRead, .outcome = outcome};
  int64_t bytes = outcome == TierOutcome::kDone ? read->second.place.shape.payload_bytes : 0;
  done.work[0] = {.done = true, .bytes = bytes, .seconds = 0};
  reads_.erase(read);
  context_.finish(std::move(done));
}

}  // namespace banyan
