// What a sequence holds of the state pools, per unit class: a leased prefix in the radix tree,
// private pages after it (as far back as the class reaches) and slots. All changes go through this
// class.
//
// Engine's thread only; the tree must outlive it.
#pragma once

#include <cstdint>
#include <vector>

#include "base/divide.h"
#include "cache/radix_tree.h"
#include "engine/sequence.h"

namespace banyan {

class Holdings {
 public:
  // If `share` is false, nothing is published and every match is empty.
  Holdings(const StateClasses& classes, RadixTree& tree, bool share)
      : classes_(classes), tree_(tree), share_(share) {}

  // Returns how much of the sequence's prefix is in the tree.
  PrefixMatch match(const Sequence& s) const;

  // Leases the matched prefix and allocates slots. Appends the required copies to `copies`, in
  // order. False if a page or slot is missing; the sequence then holds nothing.
  bool start(Sequence& s, const PrefixMatch& match, std::vector<UnitCopy>& copies);

  // Allocates the units for positions up to `end`, and releases those that s.computed has moved
  // past. False if there are not enough; units taken so far stay.
  bool reserve(Sequence& s, int64_t end);

  // Allocates the branch's own pages for positions [first, end), and appends the copy of what its
  // first page has of known tokens to `copies`. False, with nothing allocated, if there are too few
  // pages, or if the tree has part of that page already.
  bool start_branch(Sequence& s, Sequence::Branch& branch, int64_t first, int64_t end,
                    std::vector<UnitCopy>& copies);
  // The branch's pages and those of the sequence change places.
  void follow_branch(Sequence& s, Sequence::Branch& branch);
  void end_branch(Sequence::Branch& branch);

  // Publishes complete pages up to s.computed to the tree. `with_rest` includes the last, partial
  // page, which the sequence keeps writing.
  void publish(Sequence& s, bool with_rest);

  // Allocates slots for a snapshot at one position, one per class that has snapshots. Empty if a
  // class that requires snapshots has none; others may be missing.
  UnitSet take_snapshots();

  // Releases everything the sequence holds.
  void drop(Sequence& s);

  int64_t pages_for(int64_t tokens) const { return divide_up(tokens, classes_.page_size_tokens); }

  // Adds what `s` holds outside the tree to `held`; aborts if it is inconsistent.
  void check(const Sequence& s, UnitCounts& held) const;

 private:
  // Number of the sequence's pages that the tree owns.
  int64_t leased_pages(const Sequence& s) const { return pages_for(s.lease.end()); }
  bool take_slots(Sequence& s, const PrefixMatch& match, std::vector<UnitCopy>& copies);
  bool copy_part(Sequence& s, const PrefixMatch& match, std::vector<UnitCopy>& copies);
  UnitSet take_page();
  bool add_page(Sequence& s);
  void leave_behind(Sequence& s);

  const StateClasses classes_;
  RadixTree& tree_;
  bool share_;
};

}  // namespace banyan
