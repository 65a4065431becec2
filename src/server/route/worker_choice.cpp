#include "server/route/worker_choice.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "base/signed.h"

namespace banyan {
namespace {

using SteadyClock = std::chrono::steady_clock;

// If a worker's event stream has not started after this long, the worker is chosen by load alone
// until it does. A stream that ended is requested again after a pause.
constexpr auto kHelloPatience = std::chrono::seconds(1);
constexpr auto kReopenPause = std::chrono::milliseconds(100);
// An older load report is replaced by the data of /worker/info.
constexpr int64_t kReportNsMax = 2'000'000'000;

int64_t ns_of(SteadyClock::time_point time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

double elapsed_s(SteadyClock::time_point from) {
  return std::chrono::duration<double>(SteadyClock::now() - from).count();
}

bool same_classes(const StateClasses& a, const StateClasses& b) {
  return a.page_size_tokens == b.page_size_tokens && a.count == b.count &&
         std::equal(a.classes.begin(), a.classes.begin() + a.count, b.classes.begin());
}

}  // namespace

WorkerChoice::WorkerChoice(boost::asio::io_context& io, const RouteConfig& config)
    : io_(io), config_(config) {}

WorkerChoice::~WorkerChoice() = default;

void WorkerChoice::add(int number, std::shared_ptr<RemoteWorker> worker) {
  CHECK(number >= 0 && number < kWorkersMax);
  if (number >= std::ssize(sources_)) sources_.resize(as_size(number) + 1);
  CHECK(source(number).worker == nullptr, "worker {} is there already", number);
  source(number) = {.worker = std::move(worker)};
}

void WorkerChoice::remove(int number) {
  leave(number);
  if (source(number).events) source(number).events->close();
  source(number) = {};
}

void WorkerChoice::stop() {
  for (Source& source : sources_) {
    if (source.events) source.events->close();
    source.events = nullptr;
  }
}

// ---- What workers report ------------------------------------------------------------------------

void WorkerChoice::tick(SteadyTime now) {
  for (int number = 0; number < std::ssize(sources_); ++number) {
    if (source(number).worker) refresh(number, now);
  }
  for (View& view : views_) {
    if (view.workers > 0) view.fleet->tick(ns_of(now));
  }
}

void WorkerChoice::refresh(int number, SteadyTime now) {
  Source& s = source(number);
  const WorkerInfo* info = s.worker->info();
  if (info == nullptr || info->model.empty()) return;
  if (s.identity != info->identity) {
    leave(number);
    if (s.events) s.events->close();
    s = {.worker = s.worker, .identity = info->identity};
  }
  if (info->state_digest.empty()) {
    if (s.view < 0) go_by_load(number, "it was started without --state-digest");
  } else {
    listen(number, now);
  }
  if (s.view >= 0 && s.answers != s.worker->answers()) report_load(s, now);
}

bool WorkerChoice::announces(const Source& source) const {
  return source.view >= 0 && at(views_, source.view).states.has_value();
}

void WorkerChoice::listen(int number, SteadyTime now) {
  Source& s = source(number);
  if (!s.events) {
    WorkerEvents::Sinks sinks;
    sinks.message = [this, number](const KvMessage& message) { return take(number, message); };
    sinks.ended = [this, number](bool refused, const std::string& why) {
      hear_end(number, refused, why);
    };
    std::shared_ptr<HttpClient> client(s.worker, &s.worker->client());
    s.events = std::make_shared<WorkerEvents>(io_, std::move(client), std::move(sinks));
    s.opened = now;
  }
  if (s.view < 0 && now - s.opened > kHelloPatience) go_by_load(number, "it sends no events");
  if (s.events->is_open() || now < s.retry_at) return;
  KvPosition position;
  if (announces(s)) {
    position = at(views_, s.view).fleet->position(number);
  }
  s.retry_at = now + kReopenPause;
  s.events->open(position);
}

bool WorkerChoice::take(int number, const KvMessage& message) {
  Source& s = source(number);
  if (const auto* hello = std::get_if<KvHello>(&message)) {
    if (!announces(s)) {
      leave(number);
      join(number, hello);
    }
    if (*at(views_, s.view).states != StateDigest(hello->states)) return false;
    if (std::exchange(s.silent, false)) {
      spdlog::info("worker {} is chosen by its cache again", s.worker->url());
    }
  }
  if (!announces(s)) return false;
  FleetView& fleet = *at(views_, s.view).fleet;
  return fleet.apply(number, message, ns_of(SteadyClock::now()));
}

void WorkerChoice::hear_end(int number, bool refused, const std::string& why) {
  Source& s = source(number);
  ++figures_.reopened;
  spdlog::debug("worker {}: its events ended: {}", s.worker->url(), why);
  if (!refused) return;
  s.retry_at = SteadyClock::now() + std::chrono::seconds(5);
  if (s.view < 0) go_by_load(number, why);
}

void WorkerChoice::go_by_load(int number, const std::string& why) {
  Source& s = source(number);
  if (!std::exchange(s.silent, true)) {
    spdlog::warn("worker {} is chosen by its load alone: {}", s.worker->url(), why);
  }
  join(number, nullptr);
  report_load(s, SteadyClock::now());
}

// ---- Views --------------------------------------------------------------------------------------

// A view has workers of one identity that all stream events, or all do not.
int WorkerChoice::view_for(const Source& source, const KvHello* hello) {
  for (size_t i = 0; i < views_.size(); ++i) {
    const View& view = views_[i];
    if (view.workers == 0 || view.identity != source.identity ||
        view.states.has_value() != (hello != nullptr))
      continue;
    if (hello == nullptr || same_classes(view.classes, hello->classes)) return narrow<int>(i);
  }
  View made{.identity = source.identity};
  if (hello != nullptr) {
    made.states = StateDigest(hello->states);
    made.classes = hello->classes;
  } else {
    const WorkerInfo* info = source.worker->info();
    int64_t page = info != nullptr ? info->page_size_tokens : 1;
    made.classes.page_size_tokens = static_cast<int>(std::clamp<int64_t>(page, 1, 1024));
  }
  made.fleet =
      std::make_unique<FleetView>(FleetConfig{.classes = made.classes,
                                              .workers_max = kWorkersMax,
                                              .policy = find_routing_policy(config_.policy),
                                              .costs = config_.costs});
  auto place = std::ranges::find(views_, 0, &View::workers);
  if (place == views_.end()) place = views_.insert(place, View());
  *place = std::move(made);
  return narrow<int>(place - views_.begin());
}

void WorkerChoice::join(int number, const KvHello* hello) {
  Source& s = source(number);
  s.view = view_for(s, hello);
  View& view = at(views_, s.view);
  ++view.workers;
  view.fleet->add(number);
}

void WorkerChoice::leave(int number) {
  int left = std::exchange(source(number).view, -1);
  if (left < 0) return;
  View& view = at(views_, left);
  view.fleet->remove(number);
  if (--view.workers == 0) view = {};
}

// Used if the worker sends no load reports, or none recently.
void WorkerChoice::report_load(Source& s, SteadyTime now) {
  auto number = narrow<int>(&s - sources_.data());
  FleetView& fleet = *at(views_, s.view).fleet;
  const WorkerInfo* info = s.worker->info();
  s.answers = s.worker->answers();
  if (info == nullptr) return;
  if (announces(s) && ns_of(now) - fleet.worker(number).reported_ns < kReportNsMax) return;
  LoadReport report{.waiting_tokens = std::max<int64_t>(0, s.worker->waiting_tokens),
                    .waiting = std::max<int64_t>(0, info->queued),
                    .running = std::max<int64_t>(0, info->running),
                    .pages_free = std::max<int64_t>(0, info->pages_free),
                    .pages_total = std::max<int64_t>(0, info->pages_total)};
  fleet.apply(number, report, ns_of(now));
}

// ---- The choice ---------------------------------------------------------------------------------

RouteRequest WorkerChoice::request_for(const View& view, const Request& request) {
  RouteRequest made{.prompt_tokens = std::ssize(request.prompt) + request.tokens_before,
                    .output_tokens = request.output_tokens,
                    .id = request.id,
                    .excluded = request.excluded};
  if (!view.states || request.pages == nullptr) return made;
  SteadyTime begin = SteadyClock::now();
  auto known = request.pages->keys_made();
  made.pages = request.pages->keys(*view.states, view.classes.page_size_tokens, request.prompt);
  figures_.hashed_pages += request.pages->keys_made() - known;
  figures_.hashing_s += elapsed_s(begin);
  return made;
}

WorkerChoice::Placement WorkerChoice::choose(const Request& request, SteadyTime now) {
  Placement placed = choose_any(request, now);
  if (placed.worker >= 0 || request.place.empty()) return placed;
  Request anywhere = request;
  anywhere.place = {};
  return choose_any(anywhere, now);
}

// Among several views, the one in which the request is expected to finish first; for policies other
// than cost, the one with the fewest requests per worker.
WorkerChoice::Placement WorkerChoice::choose_any(const Request& request, SteadyTime now) {
  bool by_cost = config_.policy == "cost";
  Placement best;
  double best_cost = 0;
  for (int v = 0; v < std::ssize(views_); ++v) {
    View& view = at(views_, v);
    if (view.workers == 0) continue;
    if (!request.identity.empty() && view.identity != request.identity) continue;
    int64_t running = 0;
    for (int n = 0; n < std::ssize(sources_); ++n) {
      if (source(n).view != v) continue;
      const RemoteWorker& worker = *source(n).worker;
      bool fits = request.place.empty() || worker.name() == request.place;
      view.fleet->set_accepting(n, fits && worker.has_room(now));
      running += source(n).worker->in_flight;
    }
    RouteRequest routed = request_for(view, request);
    SteadyTime begin = SteadyClock::now();
    RouteChoice choice = view.fleet->choose(routed, ns_of(now));
    figures_.decision_s += elapsed_s(begin);
    ++figures_.decisions;
    if (choice.worker < 0) continue;
    double cost = by_cost ? choice.wait_s + config_.costs.prefill_weight * choice.prefill_s
                          : static_cast<double>(running) / view.workers;
    if (best.worker >= 0 && cost >= best_cost) continue;
    best = {.worker = choice.worker, .view = v, .choice = choice};
    best_cost = cost;
  }
  return best;
}

void WorkerChoice::sent(const Placement& placement, const Request& request, SteadyTime now) {
  View& view = at(views_, placement.view);
  view.fleet->sent(placement.choice, request_for(view, request), ns_of(now));
}

void WorkerChoice::ended(const Placement& placement) {
  if (placement.view < 0 || source(placement.worker).view != placement.view) return;
  at(views_, placement.view).fleet->ended(placement.worker);
}

WorkerChoice::Figures WorkerChoice::figures() const {
  Figures sum = figures_;
  for (const View& view : views_) {
    if (view.workers == 0) continue;
    sum.entries += view.fleet->tree().entries();
    sum.evicted += view.fleet->tree().evicted();
    sum.bytes += view.fleet->tree().bytes();
    sum.gaps += view.fleet->gaps();
    if (view.states) sum.announcing += view.workers;
  }
  return sum;
}

}  // namespace banyan
