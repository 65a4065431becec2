#include "fleet/fleet.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <deque>
#include <memory>
#include <queue>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "base/random.h"
#include "base/signed.h"
#include "router/fleet_view.h"

namespace banyan {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kCellLoadMax = 1.25;  // times the mean
constexpr int64_t kDecisionsKept = 1'000'000;
// Ids of blocks are below it, those of outputs from it on (replay/trace.h).
constexpr int64_t kIdsBegin = int64_t{1} << 30;

int64_t ns_of(double seconds) {
  return static_cast<int64_t>(seconds * 1e9);
}

class Simulation {
 public:
  Simulation(const Trace& trace, const FleetSimulation& config)
      : trace_(trace), config_(config), workers_(as_size(config.workers)) {
    for (const TraceRequest& request : trace.requests) {
      output_mean_ += static_cast<double>(request.output_tokens) / trace.requests.size();
      for (TokenId block : request.blocks) block_ids_ = std::max(block_ids_, int64_t{block} + 1);
    }
    workers_per_cell_ = (config.workers + config.cells - 1) / config.cells;
    FleetConfig view{.classes = config.worker.scheduler.classes,
                     .workers_max = workers_per_cell_,
                     .policy = config.policy,
                     .costs = config.costs};
    view.classes.page_size_tokens *= narrow<int>(config.worker.tokens_per_unit);
    for (int c = 0; c < config.cells; ++c) cells_.emplace_back(std::make_unique<FleetView>(view));
    for (int w = 0; w < config.workers; ++w) start(w);
  }

  FleetReport run(const std::function<void(int64_t)>& progress) {
    auto each_round = std::ssize(trace_.requests) * config_.copies;
    report_.requests = each_round * config_.rounds;
    int64_t arrived = 0;
    while (report_.ended < report_.requests) {
      double arrival_s = arrived < report_.requests ? arrival_of(arrived) : INFINITY;
      double event_s = events_.empty() ? INFINITY : events_.top().time_s;
      double delivery_s = deliveries_.empty() ? INFINITY : deliveries_.front().time_s;
      double next_s = std::min({arrival_s, event_s, delivery_s});
      CHECK(std::isfinite(next_s), "requests wait for nothing");
      now_s_ = std::max(now_s_, next_s);
      if (delivery_s == next_s) {
        deliver();
      } else if (event_s == next_s) {
        handle();
      } else {
        arrive(arrived++);
      }
      if (progress && report_.ended >= shown_ + 1000) progress(shown_ = report_.ended);
    }
    return finish();
  }

 private:
  struct Worker {
    std::unique_ptr<SimulatedWorker> engine;  // null: it has died
    int64_t life = 0;
    double reported_s = -INFINITY;
    std::set<SequenceId> requests;
  };
  struct Cell {
    explicit Cell(std::unique_ptr<FleetView> v) : view(std::move(v)) {}
    std::unique_ptr<FleetView> view;
    std::deque<SequenceId> waiting;  // in the router's queue
    int64_t in_flight = 0;
  };
  struct Live {
    int64_t index = 0;  // of all arrivals
    double arrival_s = 0;
    int64_t units = 0;  // output that the client has received
    size_t cell = 0;
    int worker = -1;
  };
  enum class Kind : uint8_t { kStepEnd, kDeath, kRestart };
  struct Event {
    double time_s = 0;
    Kind kind = Kind::kStepEnd;
    int worker = 0;
    int64_t life = 0;
    bool operator<(const Event& other) const { return time_s > other.time_s; }
  };
  struct Delivery {
    double time_s = 0;
    int worker = 0;
    int64_t life = 0;
    KvEvents events;
  };
  // One arrival of a request of the trace.
  struct Source {
    const TraceRequest& request;
    int64_t first_id = 0;  // of its blocks
  };

  double arrival_of(int64_t index) const {
    int64_t in_trace = index / config_.copies;
    auto requests = std::ssize(trace_.requests);
    double base_s = at(trace_.requests, in_trace % requests).arrival_s;
    return (in_trace / requests) * config_.round_s + base_s / config_.speedup;
  }

  // Each copy starts at a different place in the trace.
  Source source_of(int64_t index) const {
    auto requests = std::ssize(trace_.requests);
    int64_t copy = index % config_.copies, in_trace = index / config_.copies;
    int64_t place = (in_trace + copy * requests / config_.copies) % requests;
    int64_t repetition = in_trace / requests * config_.copies + copy;
    return {at(trace_.requests, place), repetition * block_ids_};
  }

  int64_t units_of(int64_t tokens) const {
    return (tokens + config_.worker.tokens_per_unit - 1) / config_.worker.tokens_per_unit;
  }

  Worker& worker(int number) { return at(workers_, number); }
  FleetView& view_of(int number) { return *at(cells_, number / workers_per_cell_).view; }
  int place_of(int number) const { return number % workers_per_cell_; }

  void start(int number);
  void die(int number);
  void arrive(int64_t index);
  size_t cell_for(const PageKey& first) const;
  bool dispatch(SequenceId id);
  void place(SequenceId id);
  std::vector<TokenId> tokens_of(const Live& live) const;
  void find_pages(std::span<const TokenId> tokens);
  void step(int number);
  void handle();
  void end_step(int number);
  void publish(int number, bool idle);
  void deliver();
  void note_token(SequenceId id, bool last);
  void place_waiting(size_t cell);
  FleetReport finish();

  const Trace& trace_;
  const FleetSimulation& config_;
  double output_mean_ = 0;
  int64_t block_ids_ = 0;
  int workers_per_cell_ = 1;
  std::vector<Worker> workers_;
  std::vector<Cell> cells_;
  std::unordered_map<SequenceId, Live> live_;
  std::priority_queue<Event> events_;
  std::deque<Delivery> deliveries_;  // all have the same delay, so they stay in order
  std::vector<PageKey> pages_;       // of the request being placed
  FleetReport report_;
  double now_s_ = 0;
  uint64_t lives_ = 0, draws_ = 0;
  int64_t shown_ = 0;
};

void Simulation::start(int number) {
  Worker& w = worker(number);
  w.engine = std::make_unique<SimulatedWorker>(config_.worker, ++lives_);
  w.life = lives_;
  w.reported_s = -INFINITY;
  view_of(number).add(place_of(number));
  view_of(number).apply(place_of(number), KvHello{.epoch = lives_}, ns_of(now_s_));
  view_of(number).apply(place_of(number),
                        KvSnapshotPart{.sequence = 0, .first = true, .last = true}, ns_of(now_s_));
  publish(number, true);
  if (config_.deaths_per_worker_hour > 0) {
    double lives = -std::log1p(-uniform(config_.seed, draws_++, 2));
    double life_h = lives / config_.deaths_per_worker_hour;
    events_.push({now_s_ + 3600 * life_h, Kind::kDeath, number, w.life});
  }
  place_waiting(as_size(number / workers_per_cell_));
}

// Its streams continue elsewhere, from what their clients have received.
void Simulation::die(int number) {
  Worker& w = worker(number);
  ++report_.deaths;
  report_.cached_tokens += w.engine->cached_tokens() * config_.worker.tokens_per_unit;
  w.engine.reset();
  w.life = 0;
  view_of(number).remove(place_of(number));
  events_.push({now_s_ + config_.restart_s, Kind::kRestart, number, 0});
  for (SequenceId id : std::exchange(w.requests, {})) {
    ++report_.resubmitted;
    place(id);
  }
}

std::vector<TokenId> Simulation::tokens_of(const Live& live) const {
  Source source = source_of(live.index);
  int64_t unit = config_.worker.tokens_per_unit;
  int64_t block = std::max<int64_t>(1, trace_.block_tokens / unit);
  std::vector<TokenId> tokens;
  int64_t left = units_of(source.request.prompt_tokens);
  tokens.reserve(as_size(left + units_of(source.request.output_tokens)));
  for (TokenId id : source.request.blocks) {
    auto own = narrow<TokenId>((source.first_id + id) % kIdsBegin);
    tokens.insert(tokens.end(), as_size(std::min(left, block)), own);
    left -= std::min(left, block);
  }
  auto output = narrow<TokenId>(kIdsBegin + live.index % kIdsBegin);
  tokens.insert(tokens.end(), as_size(live.units), output);
  return tokens;
}

// The simulated workers' keys are their trees' own hashes.
void Simulation::find_pages(std::span<const TokenId> tokens) {
  auto page = as_size(config_.worker.scheduler.classes.page_size_tokens);
  PageHash hash = hash_namespace({});
  pages_.clear();
  for (size_t begin = 0; begin + page < tokens.size(); begin += page) {
    hash = hash_page(hash, tokens.subspan(begin, page));
    pages_.push_back(key_of_hash(hash));
  }
}

// Rendezvous hashing: among the cells that are not too full, the one with the highest hash for the
// prompt's beginning.
size_t Simulation::cell_for(const PageKey& first) const {
  if (cells_.size() == 1) return 0;
  int64_t all = 0;
  for (const Cell& cell : cells_) all += cell.in_flight;
  double most = kCellLoadMax * (all + 1) / cells_.size();
  size_t best = 0;
  double best_score = -1;
  uint64_t key = 0;
  std::memcpy(&key, first.bytes.data(), sizeof key);
  for (size_t c = 0; c < cells_.size(); ++c) {
    double score = uniform(key, c, 3);
    if (cells_[c].in_flight > most) score -= 1;
    if (score > best_score) {
      best_score = score;
      best = c;
    }
  }
  return best;
}

void Simulation::arrive(int64_t index) {
  SequenceId id = static_cast<SequenceId>(index) + 1;
  Live& live = live_[id] = {.index = index, .arrival_s = arrival_of(index)};
  find_pages(tokens_of(live));
  live.cell = cell_for(pages_.empty() ? PageKey() : pages_.front());
  ++cells_[live.cell].in_flight;
  place(id);
}

void Simulation::place(SequenceId id) {
  std::deque<SequenceId>& waiting = cells_[live_.at(id).cell].waiting;
  if (waiting.empty() && dispatch(id)) return;
  ++report_.queued;
  waiting.push_back(id);
}

void Simulation::place_waiting(size_t cell) {
  std::deque<SequenceId>& waiting = cells_[cell].waiting;
  while (!waiting.empty() && dispatch(waiting.front())) waiting.pop_front();
}

// False: no worker has room.
bool Simulation::dispatch(SequenceId id) {
  Live& live = live_.at(id);
  const TraceRequest& request = source_of(live.index).request;
  std::vector<TokenId> tokens = tokens_of(live);
  find_pages(tokens);
  FleetView& view = *cells_[live.cell].view;
  RouteRequest route{.pages = pages_,
                     .prompt_tokens = std::ssize(tokens) * config_.worker.tokens_per_unit,
                     .output_tokens = static_cast<int64_t>(output_mean_),
                     .id = id ^ config_.seed << 40};
  Clock::time_point begin = Clock::now();
  RouteChoice choice = view.choose(route, ns_of(now_s_));
  auto time = std::chrono::duration<double, std::micro>(Clock::now() - begin);
  if (std::ssize(report_.decision_us) < kDecisionsKept) report_.decision_us.push_back(time.count());
  if (choice.worker < 0) return false;
  view.sent(choice, route, ns_of(now_s_));
  live.worker = narrow<int>(live.cell) * workers_per_cell_ + choice.worker;
  report_.prompt_tokens += route.prompt_tokens;
  Worker& w = worker(live.worker);
  w.requests.insert(id);
  int64_t units = units_of(request.prompt_tokens) + units_of(request.output_tokens);
  auto output = narrow<TokenId>(kIdsBegin + live.index % kIdsBegin);
  w.engine->submit({.id = id, .tokens = std::move(tokens), .tokens_max = units, .output = output});
  if (!w.engine->steps()) step(live.worker);
  return true;
}

void Simulation::step(int number) {
  double time_s = worker(number).engine->begin_step();
  if (time_s >= 0) events_.push({now_s_ + time_s, Kind::kStepEnd, number, worker(number).life});
}

void Simulation::handle() {
  Event event = events_.top();
  events_.pop();
  if (event.kind == Kind::kRestart) return start(event.worker);
  if (worker(event.worker).life != event.life) return;
  event.kind == Kind::kDeath ? die(event.worker) : end_step(event.worker);
}

void Simulation::end_step(int number) {
  SimulatedWorker& engine = *worker(number).engine;
  engine.end_step([&](SequenceId id, bool last) { note_token(id, last); });
  step(number);
  publish(number, !engine.steps());
  place_waiting(as_size(number / workers_per_cell_));
}

void Simulation::note_token(SequenceId id, bool last) {
  Live& live = live_.at(id);
  if (live.units++ == 0) report_.ttft_s.push_back(now_s_ - live.arrival_s);
  if (!last) return;
  report_.latency_s.push_back(now_s_ - live.arrival_s);
  view_of(live.worker).ended(place_of(live.worker));
  worker(live.worker).requests.erase(id);
  --cells_[live.cell].in_flight;
  live_.erase(id);
  ++report_.ended;
}

// Workers report on schedule, and immediately when they fall idle; events are delayed as
// configured.
void Simulation::publish(int number, bool idle) {
  Worker& w = worker(number);
  std::vector<KvEvent> events = w.engine->take_events();
  if (!events.empty()) {
    deliveries_.push_back({now_s_ + config_.event_delay_s, number, w.life, {std::move(events)}});
  }
  if (!idle && now_s_ < w.reported_s + config_.report_interval_s) return;
  w.reported_s = now_s_;
  FleetView& view = view_of(number);
  view.apply(place_of(number), w.engine->load(), ns_of(now_s_));
  view.tick(ns_of(now_s_));
}

void Simulation::deliver() {
  Delivery delivery = std::move(deliveries_.front());
  deliveries_.pop_front();
  if (worker(delivery.worker).life != delivery.life) return;
  FleetView& view = view_of(delivery.worker);
  CHECK(view.apply(place_of(delivery.worker), std::move(delivery.events), ns_of(now_s_)));
}

FleetReport Simulation::finish() {
  for (const Worker& w : workers_) {
    if (w.engine == nullptr) continue;
    report_.cached_tokens += w.engine->cached_tokens() * config_.worker.tokens_per_unit;
  }
  for (const Cell& cell : cells_) report_.gaps += cell.view->gaps();
  report_.end_s = now_s_;
  std::ranges::sort(report_.ttft_s);
  std::ranges::sort(report_.latency_s);
  std::ranges::sort(report_.decision_us);
  return std::move(report_);
}

}  // namespace

FleetReport simulate_fleet(const Trace& trace, const FleetSimulation& simulation,
                           const std::function<void(int64_t)>& progress) {
  return Simulation(trace, simulation).run(progress);
}

double speedup_for_load(const Trace& trace, const FleetSimulation& simulation, double load) {
  const StepTimes& times = simulation.worker.times;
  double work_s = 0, last_s = 0;
  for (const TraceRequest& request : trace.requests) {
    work_s +=
        request.prompt_tokens * times.prompt_row_s + request.output_tokens * times.decode_row_s;
    last_s = std::max(last_s, request.arrival_s);
  }
  if (work_s <= 0 || last_s <= 0) return 1;
  double takes_s = work_s * simulation.copies / simulation.workers;
  return load * last_s / takes_s;
}

}  // namespace banyan
