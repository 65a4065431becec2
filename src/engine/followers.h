// Prefixes are computed once: a sequence whose next page a running one (its leader) is about to
// publish waits for that page instead of computing it again, and then resumes from the tree.
//
// A leader announces the hashes of its prompt's pages when it is admitted. A follower leaves the
// waiting queue and returns to it when the leader has computed what both share, or stops running.
// Keeps no sequence alive. One thread.
#pragma once

#include <unordered_map>

#include "cache/prefix_key.h"
#include "cache/radix_tree.h"
#include "cache/state_classes.h"
#include "engine/sequence.h"
#include "engine/waiting_queue.h"

namespace banyan {

class Followers {
 public:
  // Both outlive this.
  Followers(const StateClasses& classes, WaitingQueue& queue) : classes_(classes), queue_(queue) {}

  // `s` is admitted, and will publish the pages of its prompt.
  void announce(Sequence& s);
  // Pages before `page` are published, or will never be.
  void withdraw(Sequence& s, int64_t page);
  // Moves `s` from the queue to a leader; false if there is none to wait for.
  bool follow(Sequence& s, const PrefixMatch& match);
  // A follower is cancelled.
  void remove(Sequence& follower);

  // Queues the followers that the leader has computed far enough for.
  void release_reached(Sequence& leader);
  // The leader stops running: withdraws its pages and queues all its followers.
  void release_all(Sequence& leader);

 private:
  Sequence* leader_for(const Sequence& s, const PrefixMatch& match) const;
  int64_t shared_tokens(const Sequence& s, const Sequence& leader) const;

  const StateClasses& classes_;
  WaitingQueue& queue_;
  std::unordered_map<PageHash, Sequence*> computing_;  // the page's leader
};

}  // namespace banyan
