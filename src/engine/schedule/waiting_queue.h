// The queue of waiting sequences, which decides who is admitted next.
//
// Policies: fcfs admits in order of arrival; priority admits the highest priority. lpm admits the
// longest cached prefix. It stays exact for queues of any length, since each waiter is attached to
// the tree node that its prompt reaches and only moves when that node changes. Ties go to the first
// to arrive. A retracted sequence keeps its place; a program's sequences arrive when the program
// began.
//
// Aging bounds how long lpm can delay a request without a cached prefix: one of every
// `aging_period` admissions takes the longest-waiting sequence. A request after n others is
// admitted within (n + 1) * aging_period admissions, whatever arrives later. The n include
// retracted sequences and later calls of programs that began earlier. Followers let others pass,
// but they have a prefix.
//
// Each call takes time logarithmic in the number of waiters (attaching also linear in the prompt's
// pages). Engine's thread only; the tree and the sequences must outlive their stay.
#pragma once

#include <cstdint>
#include <set>
#include <string_view>
#include <tuple>

#include "cache/radix_tree.h"
#include "engine/sequence.h"

namespace banyan {

enum class SchedulePolicy : uint8_t { kFcfs, kLpm, kPriority };

// Parses "fcfs", "lpm" or "priority".
SchedulePolicy schedule_policy(std::string_view name);
// The equivalent policy if no prefixes are cached: lpm becomes fcfs.
SchedulePolicy without_tree(SchedulePolicy policy);

class WaitingQueue {
 public:
  // `prompt_only`: see StateClasses.
  WaitingQueue(SchedulePolicy policy, int aging_period, RadixTree& tree, bool prompt_only)
      : policy_(policy), aging_period_(aging_period), tree_(tree), prompt_only_(prompt_only) {}

  void push(Sequence& s);
  void remove(Sequence& s);

  // The sequence to admit next; null if the queue is empty. Stable until the queue or the tree
  // changes.
  Sequence* next();
  // Corrects the prefix length of `s`, which turned out shorter than the tree reported. Returns
  // whether this may change next().
  bool correct(Sequence& s, int64_t resumable);
  // Removes `s`, which must be next(), because it is admitted.
  void admit(Sequence& s);

  int64_t size() const { return std::ssize(by_arrival_); }

  // Whether `a` is ahead of `b`, by the scores that they have or had when they left the queue.
  static bool is_ahead(const Sequence& a, const Sequence& b) {
    return std::tie(a.score, a.queues_ns, a.arrival) < std::tie(b.score, b.queues_ns, b.arrival);
  }

 private:
  using Arrival = std::tuple<int64_t, uint64_t, Sequence*>;  // time, order and sequence
  using Place = std::pair<int64_t, Arrival>;                 // score; the least comes first

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
  int overtaken_ = 0;  // consecutive admissions that passed over the longest-waiting sequence
};

}  // namespace banyan
