// Launches that repeat become graphs. A step of decoding launches the kernels of the last one with
// the same arguments, since what changes lies in device memory; a graph launches all of them at
// once.
//
// A queue collects its launches until something else follows them on the stream. A list of launches
// that has come before becomes a graph, and is that graph from then on. So nothing above kernels
// knows of graphs, and a list that never comes again costs a hash.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "base/padding.h"

namespace banyan::cuda {

// Identifies a list: two hashes of 64 bits of its functions and arguments.
struct ListKey {
  uint64_t words[2] = {0x9e3779b97f4a7c15u, 0xc2b2ae3d27d4eb4fu};
  auto operator<=>(const ListKey&) const = default;

  void add(uint64_t word) {
    for (uint64_t& hash : words) {
      hash = (hash ^ word) * 0xff51afd7ed558ccdu;
      hash ^= hash >> 32;
      word = word * 0x9fb21c651e98df25u + 1;
    }
  }
  void add_bytes(const std::byte* bytes, size_t count) {
    for (size_t i = 0; i < count; i += sizeof(uint64_t)) {
      uint64_t word = 0;
      std::memcpy(&word, bytes + i, count - i < sizeof word ? count - i : sizeof word);
      add(word);
    }
  }
};

// Launches in their order.
class LaunchList {
 public:
  // Launches what add() was given, on a queue.
  using Issue = void (*)(void* queue, const void* kernel);

  template <class Kernel>
  void add(const Kernel& kernel, Issue issue) {
    static_assert(alignof(Kernel) <= kAlignment);
    size_t at = (bytes_.size() + kAlignment - 1) / kAlignment * kAlignment;
    bytes_.resize(at + sizeof(Kernel));
    copy_without_padding(bytes_.data() + at, kernel);
    launches_.push_back({issue, at, sizeof(Kernel)});
  }
  // Launches this kernel in place of the last `count`.
  template <class Kernel>
  void replace_last(const Kernel& kernel, Issue issue, size_t count = 1) {
    launches_.resize(launches_.size() - count + 1);
    bytes_.resize(launches_.back().at);
    launches_.pop_back();
    add(kernel, issue);
  }
  // The kernel of the launch `before` the last one, if that is one of `issue`.
  template <class Kernel>
  Kernel* last(Issue issue, size_t before = 0) {
    if (before >= launches_.size()) return nullptr;
    const Launch& launch = launches_[launches_.size() - 1 - before];
    return launch.issue == issue ? reinterpret_cast<Kernel*>(bytes_.data() + launch.at) : nullptr;
  }
  size_t size() const { return launches_.size(); }
  bool empty() const { return launches_.empty(); }
  void clear() {
    launches_.clear();
    bytes_.clear();
  }
  void issue_all(void* queue) const {
    for (const Launch& launch : launches_) launch.issue(queue, bytes_.data() + launch.at);
  }
  ListKey key() const {
    ListKey key;
    for (const Launch& launch : launches_) {
      key.add(reinterpret_cast<uintptr_t>(launch.issue));
      key.add_bytes(bytes_.data() + launch.at, launch.size);
    }
    return key;
  }

 private:
  static constexpr size_t kAlignment = 16;
  struct Launch {
    Issue issue;
    size_t at, size;  // of the arguments in bytes_
  };
  std::vector<Launch> launches_;
  std::vector<std::byte> bytes_;
};

// The graphs of lists that have come before, and which lists have come once. Graph owns one.
template <class Graph>
class GraphCache {
 public:
  static constexpr size_t kGraphsMax = 128, kSeenMax = 4096;

  struct Found {
    bool seen;     // this list has come before
    Graph* graph;  // null if it has none yet
  };
  Found find(const ListKey& key) {
    auto graph = graphs_.find(key);
    if (graph != graphs_.end()) {
      recent_.splice(recent_.begin(), recent_, graph->second.place);
      return {true, graph->second.graph.get()};
    }
    if (seen_.size() >= kSeenMax) seen_.clear();
    return {!seen_.insert(key).second, nullptr};
  }

  // Drops the graph that has not been used for longest if there are too many.
  Graph& insert(const ListKey& key, std::unique_ptr<Graph> graph) {
    if (graphs_.size() >= kGraphsMax) {
      graphs_.erase(recent_.back());
      recent_.pop_back();
    }
    recent_.push_front(key);
    return *(graphs_[key] = {std::move(graph), recent_.begin()}).graph;
  }

  // Before the stream of the launches ends.
  void clear() {
    graphs_.clear();
    recent_.clear();
    seen_.clear();
  }
  size_t size() const { return graphs_.size(); }

 private:
  struct Kept {
    std::unique_ptr<Graph> graph;
    std::list<ListKey>::iterator place;
  };
  std::map<ListKey, Kept> graphs_;
  std::list<ListKey> recent_;  // most recent first
  std::set<ListKey> seen_;
};

}  // namespace banyan::cuda
