// The control groups (version 1 and 2) that limit this process.
//
// Groups nest, and the limits of all groups from the process's own up to the root apply, so callers
// take the minimum.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace banyan {

// Folders with the files of `controller` ("cpu", "memory") for the groups of this process: its own
// first, then the enclosing ones, as far as they are mounted. `proc` is the process's folder in
// /proc.
std::vector<std::string> cgroup_folders(std::string_view controller,
                                        const std::string& proc = "/proc/self");

// The CPU quota, in whole processors rounded up, of the group at `folder`; a large number without a
// quota.
int cgroup_processors(const std::string& folder);

}  // namespace banyan
