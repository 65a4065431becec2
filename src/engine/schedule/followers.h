// Avoids computing a shared prefix twice. If a running sequence (the leader) is about to publish
// the next page of a waiting one (the follower), the follower waits for it and then resumes from
// the tree.
//
// A leader announces its prompt's page hashes when it is admitted. A follower leaves the waiting
// queue until the leader has computed their common prefix or stops running. Owns no sequences.
// Engine's thread only.
#pragma once

#include <unordered_map>

#include "cache/prefix_key.h"
#include "cache/radix_tree.h"
#include "cache/state_classes.h"
#include "engine/schedule/waiting_queue.h"
#include "engine/sequence.h"

namespace banyan {

class Followers {
 public:
  // Both must outlive this object.
  Followers(const StateClasses& classes, WaitingQueue& queue) : classes_(classes), queue_(queue) {}

  // `s` was admitted and will publish the pages of its prompt.
  void announce(Sequence& s);
  // Pages before `page` have been published, or never will be.
  void withdraw(Sequence& s, int64_t page);
  // Moves `s` from the queue to a leader; false if it has none.
  bool follow(Sequence& s, const PrefixMatch& match);
  // The follower was cancelled.
  void remove(Sequence& follower);

  // Requeues the followers whose common prefix the leader has computed.
  void release_reached(Sequence& leader);
  // The leader stops running: withdraws its pages and requeues all its followers.
  void release_all(Sequence& leader);

 private:
  Sequence* leader_for(const Sequence& s, const PrefixMatch& match) const;
  int64_t shared_tokens(const Sequence& s, const Sequence& leader) const;

  const StateClasses& classes_;
  WaitingQueue& queue_;
  std::unordered_map<PageHash, Sequence*> computing_;  // the leader that computes each page
};

}  // namespace banyan
