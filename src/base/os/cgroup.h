// The control groups that limit this process, of version 2 and of version 1.
//
// Groups nest, and a limit of any group from the process's own up to the root holds, so whoever
// looks for one takes the least of all.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace banyan {

// Where the groups of `controller` ("cpu", "memory") that this process is in show their files: its
// own first, then those around it, as far as they are mounted here. `proc` is the process's folder
// in /proc.
std::vector<std::string> cgroup_folders(std::string_view controller,
                                        const std::string& proc = "/proc/self");

// The quota in whole processors, rounded up, of the group whose files are in `folder`; a large
// number where there is none.
int cgroup_processors(const std::string& folder);

}  // namespace banyan
