#include "engine/schedule/waiting_queue.h"

#include <boost/intrusive/parent_from_member.hpp>

#include "base/check.h"

namespace banyan {
namespace {

Sequence& sequence_of(PrefixWaiter& waiter) {
  return *boost::intrusive::get_parent_from_member(&waiter, &Sequence::waiter);
}

}  // namespace

SchedulePolicy schedule_policy(std::string_view name) {
  if (name == "fcfs") return SchedulePolicy::kFcfs;
  if (name == "lpm") return SchedulePolicy::kLpm;
  CHECK(name == "priority", "{}", name);
  return SchedulePolicy::kPriority;
}

SchedulePolicy without_tree(SchedulePolicy policy) {
  return policy == SchedulePolicy::kLpm ? SchedulePolicy::kFcfs : policy;
}

void WaitingQueue::push(Sequence& s) {
  s.place = Sequence::Place::kWaiting;
  s.score = policy_ == SchedulePolicy::kPriority ? -int64_t{s.request.options.priority} : 0;
  if (on_tree()) {
    s.waiter.tokens = s.reusable(prompt_only_);
    tree_.attach(s.root, s.waiter);
    s.score = -s.waiter.resumable;
  }
  by_score_.insert(place(s));
  by_arrival_.insert(arrival(s));
}

void WaitingQueue::remove(Sequence& s) {
  if (on_tree()) tree_.detach(s.waiter);
  by_score_.erase(place(s));
  by_arrival_.erase(arrival(s));
}

void WaitingQueue::set_score(Sequence& s, int64_t score) {
  auto node = by_score_.extract(place(s));
  s.score = score;
  node.value() = place(s);
  by_score_.insert(std::move(node));
}

Sequence* WaitingQueue::next() {
  while (PrefixWaiter* waiter = tree_.take_changed()) {
    set_score(sequence_of(*waiter), -waiter->resumable);
  }
  if (by_score_.empty()) return nullptr;
  bool aged = policy_ == SchedulePolicy::kLpm && overtaken_ + 1 >= aging_period_;
  return std::get<Sequence*>(aged ? *by_arrival_.begin() : by_score_.begin()->second);
}

bool WaitingQueue::correct(Sequence& s, int64_t resumable) {
  if (!on_tree() || resumable >= -s.score) return false;
  s.waiter.resumable = resumable;
  set_score(s, -resumable);
  return true;
}

void WaitingQueue::admit(Sequence& s) {
  bool oldest = std::get<Sequence*>(*by_arrival_.begin()) == &s;
  overtaken_ = oldest ? 0 : overtaken_ + 1;
  remove(s);
}

}  // namespace banyan
