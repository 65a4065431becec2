#include "engine/schedule/followers.h"

#include <algorithm>
#include <cstdint>
#include <span>

#include "base/divide.h"
#include "base/signed.h"

namespace banyan {

void Followers::announce(Sequence& s) {
  int64_t page = classes_.page_size_tokens;
  PageHash hash = s.lease.node()->hash;
  s.computing_first_page = s.lease.end() / page;
  s.withdrawn = 0;
  for (int64_t end = s.lease.end() + page; end <= s.prompt_tokens; end += page) {
    hash = hash_page(hash, slice(s.tokens, end - page, page));
    s.computing.push_back(hash);
    computing_.try_emplace(hash, &s);
  }
}

void Followers::withdraw(Sequence& s, int64_t page) {
  for (; s.withdrawn < s.computing.size() &&
         s.computing_first_page + static_cast<int64_t>(s.withdrawn) < page;
       ++s.withdrawn) {
    auto found = computing_.find(s.computing[s.withdrawn]);
    if (found != computing_.end() && found->second == &s) computing_.erase(found);
  }
}

// The running sequence that is about to compute the page after the last one that is cached or that
// `s` can resume from.
Sequence* Followers::leader_for(const Sequence& s, const PrefixMatch& match) const {
  if (computing_.empty()) return nullptr;
  auto page = as_size(classes_.page_size_tokens);
  std::span<const TokenId> tokens = s.reusable(classes_.prompt_only);
  for (const RadixNode* node : {match.node, match.deepest}) {
    std::span<const TokenId> rest = tokens.subspan(as_size(node->end));
    if (rest.size() < page) return nullptr;
    auto found = computing_.find(hash_page(node->hash, rest.first(page)));
    if (found != computing_.end()) return found->second;
  }
  return nullptr;
}

int64_t Followers::shared_tokens(const Sequence& s, const Sequence& leader) const {
  auto mine = s.reusable(classes_.prompt_only);
  auto theirs = slice(leader.tokens, 0, leader.prompt_tokens);
  return std::ranges::mismatch(mine, theirs).in1 - mine.begin();
}

bool Followers::follow(Sequence& s, const PrefixMatch& match) {
  Sequence* leader = leader_for(s, match);
  if (leader == nullptr) return false;
  int64_t shared = shared_tokens(s, *leader);
  if (classes_.needs_snapshots()) {
    // Only a snapshot helps, and only if the leader has not reached that position yet.
    int64_t alignment = classes_.resume_alignment_tokens;
    shared = shared / alignment * alignment;
    if (shared <= std::max(match.position(), leader->computed)) return false;
    leader->wanted.push_back(shared);
  } else {
    int64_t page = classes_.page_size_tokens;
    shared = std::min(divide_up(shared, page) * page, leader->prompt_tokens);
  }
  queue_.remove(s);
  s.place = Sequence::Place::kFollowing;
  s.leader = leader;
  s.followed = true;
  leader->followers.push_back({&s, shared});
  return true;
}

void Followers::remove(Sequence& follower) {
  std::erase_if(follower.leader->followers, [&](const auto& f) { return f.sequence == &follower; });
}

void Followers::release_reached(Sequence& leader) {
  std::erase_if(leader.followers, [&](const Sequence::Follower& follower) {
    if (follower.computed > leader.computed) return false;
    follower.sequence->leader = nullptr;
    queue_.push(*follower.sequence);
    return true;
  });
}

void Followers::release_all(Sequence& leader) {
  withdraw(leader, INT64_MAX);
  leader.computing.clear();
  for (const Sequence::Follower& follower : leader.followers) {
    follower.sequence->leader = nullptr;
    queue_.push(*follower.sequence);
  }
  leader.followers.clear();
}

}  // namespace banyan
