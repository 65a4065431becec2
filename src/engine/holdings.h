// What a sequence holds of the state pools, per class of units: a leased beginning in the radix
// tree, private pages after it, as far back as the class reaches, and its slots. Every change of it
// goes through here.
//
// One thread; the tree must outlive it.
#pragma once

#include <cstdint>
#include <vector>

#include "cache/radix_tree.h"
#include "engine/sequence.h"

namespace banyan {

class Holdings {
 public:
  // Without `share`, nothing is published and every match is empty.
  Holdings(const StateClasses& classes, RadixTree& tree, bool share)
      : classes_(classes), tree_(tree), share_(share) {}

  // How much of the sequence's beginning is in the tree.
  PrefixMatch match(const Sequence& s) const;

  // Leases what was matched and takes slots; what has to be copied for it is added to `copies`, in
  // order. False if there is no page for the copy, or no slot: then the sequence holds nothing.
  bool start(Sequence& s, const PrefixMatch& match, std::vector<UnitCopy>& copies);

  // Takes the units that positions up to `end` need, and gives back those that s.computed no longer
  // reaches. False if there are none left; what was taken so far stays.
  bool reserve(Sequence& s, int64_t end);

  // Puts complete pages up to s.computed into the tree; `with_rest` also the last one if it is not
  // complete, while the sequence goes on writing it.
  void publish(Sequence& s, bool with_rest);

  // Slots for the states of one position, of each class that keeps snapshots, where more than
  // `spare` are left. None if a class that decides has none; the others may lack one.
  UnitSet take_snapshots(int64_t spare);
  // The sequence goes on from these states; its own are given back.
  void restore(Sequence& s, const UnitSet& snapshots);

  // Gives everything back.
  void drop(Sequence& s);

  int64_t pages_for(int64_t tokens) const {
    return (tokens + classes_.page_size_tokens - 1) / classes_.page_size_tokens;
  }

  // Adds up in `held` what sequence `s` holds apart from the tree; aborts where that is not what it
  // needs.
  void check(const Sequence& s, UnitCounts& held) const;

 private:
  // Pages of the sequence that belong to the tree.
  int64_t leased_pages(const Sequence& s) const { return pages_for(s.lease.end()); }
  bool take_slots(Sequence& s, const PrefixMatch& match, std::vector<UnitCopy>& copies);
  bool copy_part(Sequence& s, const PrefixMatch& match, std::vector<UnitCopy>& copies);
  bool add_page(Sequence& s);
  void leave_behind(Sequence& s);

  const StateClasses classes_;
  RadixTree& tree_;
  bool share_;
};

}  // namespace banyan
