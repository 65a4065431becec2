// A copy of the radix tree's shape, for people to look at.
#pragma once

#include <cstdint>
#include <vector>

#include "cache/prefix_key.h"

namespace banyan {

class RadixTree;

// Pages of one path up to the next fork or the path's end.
struct TreeBranch {
  int64_t id = 0;                      // the unit of its last page: one branch's at a time
  int64_t parent = -1;                 // the id of the branch before it; -1: it begins at the root
  int name_space = 0;                  // which root, counted from 0
  bool is_private = false;             // its namespace has a salt or an extra key
  int64_t begin = 0, end = 0;          // positions, in tokens
  int64_t pages = 0;                   // of the path's class
  std::vector<int64_t> snapshots;      // positions that have a copy of recurrent state
  int64_t sequences = 0;               // running ones whose path goes through its first page
  int64_t hits = 0;                    // requests that were resumed within it
  int64_t last_use = 0;                // the number of the last request that was resumed in it, or
                                       // that was the last one when its pages were added
  std::vector<PrefixToken> beginning;  // its first tokens
};

struct TreeView {
  std::vector<TreeBranch> branches;  // parents first
  int64_t last_use = 0;              // the number of the last request
  bool complete = true;              // nothing was left out
};

struct TreeViewLimits {
  int64_t branches_max = 512;
  int64_t pages_max = 1 << 16;  // that are looked at
  int64_t beginning_max = 32;   // tokens of each branch
};

// Takes time in the pages that it looks at. Where a limit is met the deepest are left out.
TreeView view(const RadixTree& tree, const TreeViewLimits& limits);

}  // namespace banyan
