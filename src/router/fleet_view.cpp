#include "router/fleet_view.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "base/signed.h"

namespace banyan {
namespace {

constexpr double kNsPerSecond = 1e9;
// A prediction is kept for this multiple of the expected prefill time, and at least for the time
// that an announcement takes to arrive.
constexpr double kPredictionFactor = 2;
constexpr int64_t kPredictionNsMin = 1'000'000'000;
constexpr size_t kPredictionsMax = size_t{1} << 16;
constexpr int kSweepsPerTick = 16;

MetaTreeConfig tree_config(const FleetConfig& config) {
  return {.classes = config.classes,
          .slots_max = 2 * config.workers_max + 2,
          .entries_max = config.entries_max};
}

}  // namespace

FleetView::FleetView(const FleetConfig& config)
    : config_(config),
      tree_(tree_config(config)),
      worker_of_slot_(as_size(tree_config(config).slots_max), -1) {
  config_.costs.page_size_tokens = config.classes.page_size_tokens;
}

void FleetView::add(int worker) {
  auto index = as_size(worker);
  CHECK(worker >= 0 && worker < config_.workers_max);
  if (index >= states_.size()) {
    states_.resize(index + 1);
    links_.resize(index + 1);
  }
  CHECK(!states_[index].present, "worker {} is there already", worker);
  states_[index] = {.present = true, .accepting = true};
  links_[index] = {};
  start_anew(links_[index]);
  at(worker_of_slot_, links_[index].slot) = worker;
}

void FleetView::remove(int worker) {
  Link& link = at(links_, worker);
  CHECK(at(states_, worker).present);
  for (int slot : {link.slot, link.filling}) {
    if (slot >= 0) tree_.close(slot);
  }
  link = {};
  at(states_, worker) = {};
}

void FleetView::set_accepting(int worker, bool accepting) {
  at(states_, worker).accepting = accepting;
}

// Discards everything known about the worker. A worker has at most two slots, and there are two for
// each.
void FleetView::start_anew(Link& link) {
  for (int slot : {link.slot, link.filling}) {
    if (slot >= 0) tree_.close(slot);
  }
  link.filling = -1;
  link.slot = tree_.open();
  CHECK(link.slot >= 0);
}

KvPosition FleetView::position(int worker) const {
  const Link& link = at(links_, worker);
  return {link.epoch, link.next};
}

bool FleetView::apply(int worker, const KvMessage& message, int64_t now_ns) {
  WorkerState& state = at(states_, worker);
  CHECK(state.present);
  bool complete = std::visit(
      [&](const auto& part) {
        using Part = std::decay_t<decltype(part)>;
        if constexpr (std::is_same_v<Part, KvHello>) {
          return begin(worker, part);
        } else if constexpr (std::is_same_v<Part, KvEvents>) {
          return apply_events(worker, part);
        } else if constexpr (std::is_same_v<Part, KvSnapshotPart>) {
          return apply_snapshot(worker, part);
        } else {
          state.report = part;
          state.reported_ns = now_ns;
          state.sent_tokens = state.sent_pages = state.sent_requests = 0;
          return part.next_event <= at(links_, worker).next;
        }
      },
      message);
  const Link& link = at(links_, worker);
  at(worker_of_slot_, link.slot) = worker;
  if (!complete) ++gaps_;
  return complete;
}

bool FleetView::begin(int worker, const KvHello& hello) {
  Link& link = at(links_, worker);
  if (link.filling >= 0) tree_.close(std::exchange(link.filling, -1));
  if (hello.epoch == link.epoch) return true;
  start_anew(link);
  link.epoch = hello.epoch;
  link.next = 0;
  return true;
}

bool FleetView::apply_events(int worker, const KvEvents& message) {
  Link& link = at(links_, worker);
  for (const KvEvent& event : message.events) {
    if (event.sequence < link.next) continue;  // received before
    if (event.sequence > link.next || link.epoch == 0) return false;
    ++link.next;
    switch (event.operation) {
      case KvOperation::kStored:
        tree_.stored(link.slot, event.unit);
        break;
      case KvOperation::kRemoved:
        tree_.removed(link.slot, event.unit);
        break;
      case KvOperation::kCleared:
        start_anew(link);
        break;
    }
  }
  return true;
}

// The old knowledge is kept until the snapshot's last part has arrived.
bool FleetView::apply_snapshot(int worker, const KvSnapshotPart& part) {
  Link& link = at(links_, worker);
  if (link.epoch == 0) return false;
  if (part.first) {
    if (link.filling >= 0) tree_.close(link.filling);
    link.filling = tree_.open();
    CHECK(link.filling >= 0);
  }
  if (link.filling < 0) return false;
  for (const KvUnit& unit : part.units) tree_.stored(link.filling, unit);
  if (!part.last) return true;
  tree_.close(link.slot);
  link.slot = std::exchange(link.filling, -1);
  link.next = part.sequence + 1;
  return true;
}

void FleetView::tick(int64_t now_ns) {
  for (int i = 0; i < kSweepsPerTick && tree_.sweep(); ++i) continue;
  while (!predictions_.empty() &&
         (predictions_.top().end_ns <= now_ns || predictions_.size() > kPredictionsMax)) {
    const Prediction& ended = predictions_.top();
    auto worker = as_size(ended.worker);
    bool same = states_[worker].present && links_[worker].slot == ended.slot;
    if (same) tree_.unpredict(ended.slot, ended.pages);
    predictions_.pop();
  }
}

void FleetView::find_holders(const RouteRequest& request) {
  holders_.clear();
  int64_t page = config_.classes.page_size_tokens;
  for (const PrefixHolder& held : tree_.match(request.pages)) {
    int worker = at(worker_of_slot_, held.slot);
    if (worker < 0 || at(links_, worker).slot != held.slot) continue;
    holders_.push_back({.worker = worker,
                        .tokens = held.pages * page,
                        .loaded_tokens = (held.pages - held.memory_pages) * page});
  }
}

RouteChoice FleetView::choose(const RouteRequest& request, int64_t now_ns) {
  if (!predictions_.empty() && predictions_.top().end_ns <= now_ns) tick(now_ns);
  find_holders(request);
  RouteContext context{.request = request,
                       .workers = states_,
                       .holders = holders_,
                       .costs = config_.costs,
                       .usual = usual_speeds(states_),
                       .decision = decisions_++};
  int worker = config_.policy->choose(context);
  if (worker < 0) return {};
  HeldPrefix held = context.held_by(worker);
  return {.worker = worker,
          .cached_tokens = held.tokens,
          .new_tokens = request.prompt_tokens - held.tokens,
          .wait_s = context.wait_s(worker),
          .prefill_s = context.prefill_s(held)};
}

void FleetView::sent(const RouteChoice& choice, const RouteRequest& request, int64_t now_ns) {
  WorkerState& state = at(states_, choice.worker);
  int64_t page = config_.classes.page_size_tokens;
  ++state.in_flight;
  ++state.sent_requests;
  state.sent_tokens += choice.new_tokens;
  state.sent_pages += (choice.new_tokens + request.output_tokens + page - 1) / page;
  auto lasts_ns =
      static_cast<int64_t>(kPredictionFactor * kNsPerSecond * (choice.wait_s + choice.prefill_s));
  Prediction prediction{.end_ns = now_ns + std::max(kPredictionNsMin, lasts_ns),
                        .worker = choice.worker,
                        .slot = slot(choice.worker),
                        .pages = {request.pages.begin(), request.pages.end()}};
  tree_.predict(prediction.slot, prediction.pages);
  predictions_.push(std::move(prediction));
}

void FleetView::ended(int worker) {
  int64_t& in_flight = at(states_, worker).in_flight;
  in_flight = std::max<int64_t>(0, in_flight - 1);
}

}  // namespace banyan
