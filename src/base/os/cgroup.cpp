#include "base/os/cgroup.h"

#include <algorithm>
#include <climits>
#include <cstdint>
#include <fstream>
#include <sstream>

namespace banyan {
namespace {

// Whether `name` is in a comma-separated list.
bool lists(std::string_view list, std::string_view name) {
  while (!list.empty()) {
    size_t comma = std::min(list.find(','), list.size());
    if (list.substr(0, comma) == name) return true;
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return false;
}

struct Mount {
  std::string root;   // the group mounted as root
  std::string point;  // mount point
};

// Parses a line of mountinfo: id, parent, device, root, mount point, options, more, "-", type,
// source, the file system's own options (see proc_pid_mountinfo(5)).
bool read_mount(const std::string& line, bool unified, std::string_view controller, Mount& mount) {
  std::istringstream fields(line);
  std::string skipped, type, source, options;
  fields >> skipped >> skipped >> skipped >> mount.root >> mount.point;
  while (fields >> skipped && skipped != "-") {
  }
  if (!(fields >> type >> source >> options)) return false;
  return unified ? type == "cgroup2" : type == "cgroup" && lists(options, controller);
}

void append_folders(const Mount& mount, std::string path, std::vector<std::string>& folders) {
  if (mount.root != "/") path = path.starts_with(mount.root) ? path.substr(mount.root.size()) : "";
  if (path.find("..") != std::string::npos) path.clear();  // outside this mount
  while (path.size() > 1) {
    folders.push_back(mount.point + path);
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
  folders.push_back(mount.point);
}

}  // namespace

std::vector<std::string> cgroup_folders(std::string_view controller, const std::string& proc) {
  std::vector<std::string> folders;
  std::ifstream groups(proc + "/cgroup");
  for (std::string group; std::getline(groups, group);) {  // hierarchy:controllers:path
    size_t first = group.find(':'), second = group.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    std::string controllers = group.substr(first + 1, second - first - 1);
    if (!controllers.empty() && !lists(controllers, controller)) continue;
    std::ifstream mounts(proc + "/mountinfo");
    Mount mount;
    for (std::string line; std::getline(mounts, line);) {
      if (read_mount(line, controllers.empty(), controller, mount)) {
        append_folders(mount, group.substr(second + 1), folders);
        break;
      }
    }
  }
  return folders;
}

int cgroup_processors(const std::string& folder) {
  std::string quota;
  int64_t period = 0;
  if (!(std::ifstream(folder + "/cpu.max") >> quota >> period)) {
    std::ifstream(folder + "/cpu.cfs_quota_us") >> quota;
    std::ifstream(folder + "/cpu.cfs_period_us") >> period;
  }
  int64_t allowed = std::atoll(quota.c_str());  // "max" and empty give 0; -1 is no limit
  if (allowed <= 0 || period <= 0) return INT_MAX;
  return static_cast<int>(
      std::clamp<int64_t>(allowed / period + (allowed % period > 0), 1, INT_MAX));
}

}  // namespace banyan
