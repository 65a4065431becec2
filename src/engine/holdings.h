// What a sequence holds of the state pools: a leased beginning in the radix tree, private pages
// behind it, window pages within reach, a slot. Every change of it goes through here.
//
// One thread; the tree must outlive it.
#pragma once

#include <cstdint>
#include <vector>

#include "cache/radix_tree.h"
#include "engine/sequence.h"
#include "ops/batch.h"

namespace banyan {

// What is copied within the pools before a step, each list in its order.
struct StateCopies {
  std::vector<PageCopy> pages, window_pages;
  std::vector<SlotCopy> slots;
};

class Holdings {
 public:
  // Without `share`, nothing is published and every match is empty.
  Holdings(const StateClasses& classes, RadixTree& tree, bool share)
      : classes_(classes), tree_(tree), share_(share) {}

  // How much of the sequence's beginning is in the tree.
  PrefixMatch match(const Sequence& s) const;

  // Leases what was matched and takes a slot; what has to be copied for it is added to `copies`.
  // False if there is no page for the copy, or no slot: then the sequence holds nothing.
  bool start(Sequence& s, const PrefixMatch& match, StateCopies& copies);

  // Takes the units that positions up to `end` need, and gives back window pages that s.computed no
  // longer sees. False if there are none left; what was taken so far stays.
  bool reserve(Sequence& s, int64_t end);

  // Puts complete pages up to s.computed into the tree; `with_rest` also the last one if it is not
  // complete, while the sequence goes on writing it.
  void publish(Sequence& s, bool with_rest);

  // Gives everything back.
  void drop(Sequence& s);

  int64_t pages_for(int64_t tokens) const {
    return (tokens + classes_.page_size_tokens - 1) / classes_.page_size_tokens;
  }

 private:
  // Pages of the sequence that belong to the tree.
  int64_t leased_pages(const Sequence& s) const { return pages_for(s.lease.end()); }
  bool add_page(Sequence& s);
  void leave_window(Sequence& s);

  const StateClasses classes_;
  RadixTree& tree_;
  bool share_;
};

}  // namespace banyan
