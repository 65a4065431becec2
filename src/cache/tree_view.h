// A snapshot of the radix tree's shape for display and debugging. It is a copy; call view() on the
// engine's thread.
#pragma once

#include <cstdint>
#include <vector>

#include "cache/prefix_key.h"

namespace banyan {

class RadixTree;

// A run of pages without forks.
struct TreeBranch {
  int64_t id = 0;                      // unit of its last page, unique at any time
  int64_t parent = -1;                 // id of the branch before it; -1: starts at the root
  int name_space = 0;                  // index of its root
  bool is_private = false;             // its namespace has a salt or an extra key
  int64_t begin = 0, end = 0;          // positions, in tokens
  int64_t pages = 0;                   // of the path class
  std::vector<int64_t> snapshots;      // positions of recurrent-state snapshots
  int64_t sequences = 0;               // running sequences whose path includes its first page
  int64_t hits = 0;                    // requests that resumed inside it
  int64_t last_use = 0;                // number of the last request that resumed in it,
                                       // or the last one when its pages were added
  std::vector<PrefixToken> beginning;  // its first tokens
};

struct TreeView {
  std::vector<TreeBranch> branches;  // parents first
  int64_t last_use = 0;              // number of the last request
  bool complete = true;              // nothing was truncated
};

struct TreeViewLimits {
  int64_t branches_max = 512;
  int64_t pages_max = 1 << 16;  // pages to visit
  int64_t beginning_max = 32;   // tokens shown per branch
};

// Time is linear in the pages visited. When a limit is reached, the deepest pages are omitted.
TreeView view(const RadixTree& tree, const TreeViewLimits& limits);

}  // namespace banyan
