#include "engine/scheduler.h"

#include <algorithm>

#include "base/check.h"

namespace banyan {
namespace {

// Takes the element that satisfies `match` out of `list`; null if there is none.
template <class List, class Match>
std::unique_ptr<Sequence> extract(List& list, Match match) {
  auto it = std::ranges::find_if(list, [&](const auto& s) { return match(*s); });
  if (it == list.end()) return nullptr;
  std::unique_ptr<Sequence> sequence = std::move(*it);
  list.erase(it);
  return sequence;
}

}  // namespace

Scheduler::Scheduler(int64_t pages, int page_size_tokens, int running_max, int64_t rows_max)
    : free_pages_(pages),
      pages_total_(pages),
      page_size_tokens_(page_size_tokens),
      running_max_(running_max),
      rows_max_(rows_max) {
  running_.reserve(static_cast<size_t>(running_max));
}

void Scheduler::enqueue(std::unique_ptr<Sequence> sequence) {
  CHECK(pages_for(sequence->tokens_max) <= pages_total_);
  waiting_.push_back(std::move(sequence));
}

void Scheduler::cancel(SequenceId id) {
  auto mark = [id](const std::unique_ptr<Sequence>& s) {
    if (s->id == id) s->cancelled = true;
  };
  std::ranges::for_each(waiting_, mark);
  std::ranges::for_each(running_, mark);
}

void Scheduler::admit() {
  while (!waiting_.empty() && running() < running_max_) {
    Sequence& next = *waiting_.front();
    int64_t pages = pages_for(next.tokens_max);
    if (pages > free_pages_.free_count()) return;
    next.pages.reserve(static_cast<size_t>(pages));
    for (int64_t i = 0; i < pages; ++i) next.pages.push_back(free_pages_.take());
    running_.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
}

void Scheduler::plan(StepPlan& plan) {
  admit();
  plan.spans.clear();
  int64_t rows_left = rows_max_;
  auto add = [&](Sequence& s) {
    int64_t count = std::min(s.pending(), rows_left);
    if (count == 0) return;
    plan.spans.push_back({&s, s.computed, count});
    rows_left -= count;
  };
  for (auto& s : running_) {
    if (s->pending() == 1) add(*s);
  }
  for (auto& s : running_) {
    if (s->pending() > 1) add(*s);
  }
}

std::unique_ptr<Sequence> Scheduler::remove(Sequence* sequence) {
  auto is_it = [&](const Sequence& s) { return &s == sequence; };
  std::unique_ptr<Sequence> taken = extract(running_, is_it);
  if (taken == nullptr) taken = extract(waiting_, is_it);
  CHECK(taken != nullptr, "sequence is not scheduled");
  for (int32_t page : taken->pages) free_pages_.give_back(page);
  taken->pages.clear();
  return taken;
}

std::unique_ptr<Sequence> Scheduler::remove_cancelled() {
  auto find = [](auto& list) -> Sequence* {
    auto it = std::ranges::find_if(list, [](const auto& s) { return s->cancelled; });
    return it == list.end() ? nullptr : it->get();
  };
  Sequence* cancelled = find(running_);
  if (cancelled == nullptr) cancelled = find(waiting_);
  return cancelled == nullptr ? nullptr : remove(cancelled);
}

}  // namespace banyan
