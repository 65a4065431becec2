#include "engine/holdings.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace banyan {

PrefixMatch Holdings::match(const Sequence& s) const {
  if (!share_) return {.node = s.root, .deepest = s.root};
  return tree_.match(s.root, s.reusable(classes_.prompt_only));
}

bool Holdings::start(Sequence& s, const PrefixMatch& match, StateCopies& copies) {
  s.lease = tree_.lease(match.node);
  s.computed = match.node->end;
  tree_.units(s.lease, s.pages, s.window_pages);
  s.window_first = s.lease.window_begin() / classes_.page_size_tokens;
  if (classes_.recurrent) {
    tree_.touch_snapshot(match.node);
    s.slot = tree_.take_slot();
    // Taking the slot may have cost the very snapshot; its bytes are there until the copy is done.
    if (s.slot >= 0 && match.snapshot >= 0 && s.slot != match.snapshot) {
      copies.slots.push_back({.from = match.snapshot, .to = s.slot});
    }
  }
  bool complete = !classes_.recurrent || s.slot >= 0;
  if (complete && match.partial != nullptr) {
    // As above: taking a page may evict the partial one, whose bytes stay until the copy.
    PageUnits from = {match.partial->page, match.partial->window_page};
    complete = add_page(s);
    if (complete && from.page != s.pages.back()) {
      copies.pages.push_back(
          {from.page, s.pages.back(), static_cast<int32_t>(match.partial_tokens)});
    }
    if (complete && classes_.window_tokens > 0 && from.window_page != s.window_pages.back()) {
      copies.window_pages.push_back(
          {from.window_page, s.window_pages.back(), static_cast<int32_t>(match.partial_tokens)});
    }
    s.computed += match.partial_tokens;
  }
  if (!complete) drop(s);
  return complete;
}

bool Holdings::add_page(Sequence& s) {
  int32_t page = tree_.take_page();
  if (page < 0) return false;
  int32_t window_page = -1;
  if (classes_.window_tokens > 0) {
    window_page = tree_.take_window_page();
    if (window_page < 0) {
      tree_.give_back_page(page);
      return false;
    }
  }
  s.pages.push_back(page);
  s.window_pages.push_back(window_page);
  return true;
}

bool Holdings::reserve(Sequence& s, int64_t end) {
  leave_window(s);
  int64_t pages = pages_for(end);
  while (static_cast<int64_t>(s.pages.size()) < pages) {
    if (!add_page(s)) return false;
  }
  return true;
}

void Holdings::leave_window(Sequence& s) {
  if (classes_.window_tokens == 0) return;
  int64_t begin = std::max<int64_t>(0, s.computed - (classes_.window_tokens - 1));
  int64_t first = begin / classes_.page_size_tokens;
  int64_t leased = leased_pages(s);
  for (; s.window_first < first; ++s.window_first) {
    int32_t& page = s.window_pages[static_cast<size_t>(s.window_first)];
    if (s.window_first >= leased && page >= 0) tree_.give_back_window_page(page);
    page = -1;
  }
  tree_.advance_window(s.lease, begin);
}

void Holdings::publish(Sequence& s, bool with_rest) {
  if (!share_) return;
  int64_t page = classes_.page_size_tokens;
  int64_t end = classes_.prompt_only ? std::min(s.computed, s.prompt_tokens) : s.computed;
  auto tokens = [&](int64_t first, int64_t count) {
    return std::span(s.tokens).subspan(static_cast<size_t>(first), static_cast<size_t>(count));
  };
  int64_t first = s.lease.end() / page * page;
  for (; first + page <= end; first += page) {
    auto i = static_cast<size_t>(first / page);
    PageUnits units = tree_.publish(s.lease, tokens(first, page), {s.pages[i], s.window_pages[i]});
    s.pages[i] = units.page;
    s.window_pages[i] = units.window_page;
  }
  bool rest = with_rest && !classes_.recurrent && end > std::max(first, s.lease.end());
  if (!rest) return;
  auto i = static_cast<size_t>(first / page);
  tree_.publish_open(s.lease, tokens(first, end - first), {s.pages[i], s.window_pages[i]});
}

void Holdings::drop(Sequence& s) {
  for (auto i = static_cast<size_t>(leased_pages(s)); i < s.pages.size(); ++i) {
    tree_.give_back_page(s.pages[i]);
    if (s.window_pages[i] >= 0) tree_.give_back_window_page(s.window_pages[i]);
  }
  s.pages.clear();
  s.window_pages.clear();
  s.window_first = 0;
  s.lease.release();
  if (s.slot >= 0) tree_.give_back_slot(std::exchange(s.slot, -1));
  s.computed = 0;
}

}  // namespace banyan
