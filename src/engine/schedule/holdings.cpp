#include "engine/schedule/holdings.h"

#include <algorithm>

#include "base/check.h"
#include "base/signed.h"

namespace banyan {

PrefixMatch Holdings::match(const Sequence& s) const {
  if (!share_) return {.node = s.root, .deepest = s.root};
  return tree_.match(s.root, s.reusable(classes_.prompt_only));
}

bool Holdings::start(Sequence& s, const PrefixMatch& match, std::vector<UnitCopy>& copies) {
  s.lease = tree_.lease(match.node);
  s.computed = match.node->end;
  for (int c = 0; c < classes_.count; ++c) {
    if (!classes_[c].paged()) continue;
    tree_.units(s.lease, c, s.held(c).units);
    s.held(c).first = s.lease.begin(c) / classes_.page_size_tokens;
  }
  bool complete = take_slots(s, match, copies) && copy_part(s, match, copies);
  if (!complete) drop(s);
  return complete;
}

// A slot is initialised from the matched snapshot, or zeroed if the class is advisory and has none.
// Otherwise it is left as it is, since the first position overwrites it.
bool Holdings::take_slots(Sequence& s, const PrefixMatch& match, std::vector<UnitCopy>& copies) {
  tree_.touch_snapshots(match.node);
  // Taking a slot may evict this very snapshot, but its bytes survive until the copy runs.
  UnitSet snapshots;
  if (match.partial == nullptr) snapshots = tree_.units(*match.node);
  for (int c = 0; c < classes_.count; ++c) {
    if (classes_[c].paged()) continue;
    int32_t slot = tree_.take(c);
    if (slot < 0) return false;
    s.held(c).units.assign(1, slot);
    int32_t from = snapshots[c] >= 0 ? snapshots[c] : tree_.blank(c);
    if (from >= 0 && from != slot) copies.push_back({.unit_class = c, .from = from, .to = slot});
  }
  return true;
}

// Copies the first tokens of a page that belongs to another sequence.
bool Holdings::copy_part(Sequence& s, const PrefixMatch& match, std::vector<UnitCopy>& copies) {
  if (match.partial == nullptr) return true;
  // As above: taking a page may evict the partial one, whose bytes survive until the copy.
  UnitSet part = tree_.units(*match.partial);
  if (!add_page(s)) return false;
  for (int c = 0; c < classes_.count; ++c) {
    if (!classes_[c].paged()) continue;
    int32_t from = part[c] >= 0 ? part[c] : tree_.blank(c), to = s.held(c).units.back();
    if (from != to) copies.push_back({c, from, to, narrow<int32_t>(match.partial_tokens)});
  }
  s.computed += match.partial_tokens;
  return true;
}

// Takes a unit of each class with pages; empty if one has none.
UnitSet Holdings::take_page() {
  UnitSet units;
  for (int c = 0; c < classes_.count; ++c) {
    if (!classes_[c].paged()) continue;
    units[c] = tree_.take(c);
    if (units[c] >= 0) continue;
    tree_.give_back(units);
    return {};
  }
  return units;
}

bool Holdings::add_page(Sequence& s) {
  UnitSet units = take_page();
  if (units == UnitSet()) return false;
  for (int c = 0; c < classes_.count; ++c) {
    if (classes_[c].paged()) s.held(c).units.push_back(units[c]);
  }
  return true;
}

bool Holdings::start_branch(Sequence& s, Sequence::Branch& branch, int64_t first, int64_t end,
                            std::vector<UnitCopy>& copies) {
  branch.first_page = first / classes_.page_size_tokens;
  if (branch.first_page < leased_pages(s)) return false;
  for (int64_t pages = branch.first_page; pages < pages_for(end); ++pages) {
    UnitSet units = take_page();
    if (units == UnitSet()) {
      end_branch(branch);
      return false;
    }
    for (int c = 0; c < classes_.count; ++c) at(branch.units, c).push_back(units[c]);
  }
  int64_t known = s.computed - branch.first_page * classes_.page_size_tokens;
  for (int c = 0; c < classes_.count && known > 0; ++c) {
    copies.push_back({c, at(s.held(c).units, branch.first_page), at(branch.units, c).front(),
                      narrow<int32_t>(known)});
  }
  return true;
}

void Holdings::follow_branch(Sequence& s, Sequence::Branch& branch) {
  for (int c = 0; c < classes_.count; ++c) {
    std::vector<int32_t>& units = s.held(c).units;
    for (int64_t i = 0; i < std::ssize(at(branch.units, c)); ++i) {
      int64_t page = branch.first_page + i;
      if (page == std::ssize(units)) units.push_back(-1);
      std::swap(at(units, page), at(at(branch.units, c), i));
    }
  }
}

void Holdings::end_branch(Sequence::Branch& branch) {
  for (int c = 0; c < classes_.count; ++c) {
    for (int32_t unit : at(branch.units, c)) {
      if (unit >= 0) tree_.give_back(c, unit);
    }
    at(branch.units, c).clear();
  }
}

bool Holdings::reserve(Sequence& s, int64_t end) {
  leave_behind(s);
  for (int64_t pages = pages_for(end); s.pages() < pages;) {
    if (!add_page(s)) return false;
  }
  return true;
}

// Releases pages that no later position can reach.
void Holdings::leave_behind(Sequence& s) {
  for (int c = 0; c < classes_.count; ++c) {
    if (!classes_[c].windowed()) continue;
    Sequence::Held& held = s.held(c);
    int64_t begin = classes_[c].reach_begin(s.computed);
    int64_t first = begin / classes_.page_size_tokens, leased = leased_pages(s);
    for (; held.first < first; ++held.first) {
      int32_t& unit = at(held.units, held.first);
      if (held.first >= leased && unit >= 0) tree_.give_back(c, unit);
      unit = -1;
    }
    tree_.advance(s.lease, c, begin);
  }
}

void Holdings::publish(Sequence& s, bool with_rest) {
  if (!share_) return;
  int64_t page = classes_.page_size_tokens;
  int64_t end = classes_.prompt_only ? std::min(s.computed, s.prompt_tokens) : s.computed;
  auto tokens = [&](int64_t first, int64_t count) { return slice(s.tokens, first, count); };
  auto units_at = [&](int64_t first) {
    UnitSet units;
    for (int c = 0; c < classes_.count; ++c) {
      if (classes_[c].paged()) units[c] = at(s.held(c).units, first / page);
    }
    return units;
  };
  int64_t first = s.lease.end() / page * page;
  for (; first + page <= end; first += page) {
    UnitSet units = tree_.publish(s.lease, tokens(first, page), units_at(first));
    for (int c = 0; c < classes_.count; ++c) {
      if (classes_[c].paged()) at(s.held(c).units, first / page) = units[c];
    }
  }
  bool rest = with_rest && !classes_.needs_snapshots() && end > std::max(first, s.lease.end());
  if (rest) tree_.publish_open(s.lease, tokens(first, end - first), units_at(first));
}

UnitSet Holdings::take_snapshots() {
  UnitSet slots;
  for (int c = 0; c < classes_.count; ++c) {
    if (!classes_[c].snapshots()) continue;
    if (tree_.use(c).available() > 0) slots[c] = tree_.take(c);
    if (slots[c] >= 0 || !classes_[c].decides()) continue;
    tree_.give_back(slots);
    return {};
  }
  return slots;
}

void Holdings::drop(Sequence& s) {
  int64_t leased = leased_pages(s);
  for (int c = 0; c < classes_.count; ++c) {
    Sequence::Held& held = s.held(c);
    auto own = as_size(classes_[c].paged() ? leased : 0);
    for (size_t i = own; i < held.units.size(); ++i) {
      if (held.units[i] >= 0) tree_.give_back(c, held.units[i]);
    }
    held.units.clear();
    held.first = 0;
  }
  for (Sequence::Branch& branch : s.draft.branches) end_branch(branch);
  s.lease.release();
  s.computed = 0;
}

void Holdings::check(const Sequence& s, UnitCounts& held) const {
  CHECK(s.computed <= s.pages() * classes_.page_size_tokens);
  for (int c = 0; c < classes_.count; ++c) {
    const Sequence::Held& of_class = s.held(c);
    bool paged = classes_[c].paged();
    CHECK(std::ssize(of_class.units) == (paged ? s.pages() : 1));
    int64_t own = paged ? leased_pages(s) : 0;
    for (int64_t i = 0; i < std::ssize(of_class.units); ++i) {
      int32_t unit = at(of_class.units, i);
      CHECK(i < of_class.first || unit >= 0, "{}: none at {}", describe(classes_[c]), i);
      CHECK(unit < tree_.use(c).total || (i < own && unit == tree_.blank(c)));
      at(held, c) += i >= own && unit >= 0;
    }
  }
  for (const Sequence::Branch& branch : s.draft.branches) {
    for (int c = 0; c < classes_.count; ++c) at(held, c) += std::ssize(at(branch.units, c));
  }
}

}  // namespace banyan
