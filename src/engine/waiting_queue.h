// Sequences that wait for their turn, and whose turn it is.
//
// Policies: fcfs takes the sequence that arrived first. lpm takes the one with the longest prefix
// in the radix tree, at any length of the queue: each waiter is attached to the tree's node that
// its prompt reaches, so its place changes when that node does and costs nothing otherwise.
// priority takes the highest priority. Ties go to the first to arrive; a retracted sequence keeps
// its place, and one that belongs to a program counts as having arrived when the program began.
//
// Aging bounds how long lpm may delay a request without a cached prefix: one of every
// `aging_period` admissions is the sequence that has waited longest. So a request that found n
// others waiting is admitted as one of the next (n + 1) * aging_period at the latest, whatever
// arrives after it (retracted sequences, which go back to their old places, count among the others;
// one that follows a running sequence lets others pass meanwhile, but then it is not without a
// prefix; so do later calls of programs that began before).
//
// Each call takes time logarithmic in the number of waiters (attaching also in the prompt's pages).
// One thread; the tree and the sequences must outlive their stay.
#pragma once

#include <cstdint>
#include <set>
#include <string_view>
#include <tuple>

#include "cache/radix_tree.h"
#include "engine/sequence.h"

namespace banyan {

enum class SchedulePolicy : uint8_t { kFcfs, kLpm, kPriority };

// "fcfs", "lpm" or "priority".
SchedulePolicy schedule_policy(std::string_view name);
// What is left of a policy where no prefix is kept: lpm is fcfs.
SchedulePolicy without_tree(SchedulePolicy policy);

class WaitingQueue {
 public:
  // `prompt_only`: see StateClasses.
  WaitingQueue(SchedulePolicy policy, int aging_period, RadixTree& tree, bool prompt_only)
      : policy_(policy), aging_period_(aging_period), tree_(tree), prompt_only_(prompt_only) {}

  void push(Sequence& s);
  void remove(Sequence& s);

  // Whose turn it is; null if nobody waits. The same until something changes.
  Sequence* next();
  // The prefix of `s` turned out to be shorter than the tree had promised: its turn may be over.
  // False if it was not.
  bool correct(Sequence& s, int64_t resumable);
  // Removes `s`, the next, since it is admitted.
  void admit(Sequence& s);

  int64_t size() const { return static_cast<int64_t>(by_arrival_.size()); }

 private:
  using Arrival = std::tuple<int64_t, uint64_t, Sequence*>;  // when, and in which order
  using Place = std::pair<int64_t, Arrival>;                 // score, the least first

  bool on_tree() const { return policy_ == SchedulePolicy::kLpm; }
  void set_score(Sequence& s, int64_t score);
  static Arrival arrival(Sequence& s) { return {s.queues_ns, s.arrival, &s}; }
  static Place place(Sequence& s) { return {s.score, arrival(s)}; }

  SchedulePolicy policy_;
  int aging_period_;
  RadixTree& tree_;
  bool prompt_only_;
  std::set<Place> by_score_;
  std::set<Arrival> by_arrival_;
  int overtaken_ = 0;  // admissions in a row that passed over the longest waiting sequence
};

}  // namespace banyan
