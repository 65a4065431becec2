// What the asynchronous proxy sees of a block's shared memory: what threads have stored only once a
// fence.proxy.async stands between. Either the thread that stored has run one since, or the warp
// that reads has, after it had waited for others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace banyan::ptx {

class Warp;

class Proxy {
 public:
  void resize(size_t shared_bytes) { stores_.resize(shared_bytes / kUnit + 1); }
  // Time passes with every store and fence.
  uint64_t now() const { return time_; }

  void stored(const Warp& warp, int lane, uint64_t offset, size_t bytes);
  // The asynchronous proxy has written these itself.
  void forget(uint64_t offset, size_t bytes);
  void fenced(Warp& warp);
  // Fails if the warp's products cannot see what was stored at this address.
  void check(const Warp& warp, uint64_t address) const;

 private:
  static constexpr size_t kUnit = 16;  // bytes
  struct Store {
    uint64_t time = 0;  // 0: none
    uint32_t warp = 0;
    int lane = 0;
    int line = 0;
  };

  uint64_t time_ = 1;
  std::vector<Store> stores_;
};

}  // namespace banyan::ptx
