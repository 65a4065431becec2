// What a launch writes to global memory, so that it can be looked at and undone.
#pragma once

#include <cstddef>
#include <cstring>
#include <vector>

namespace banyan::ptx {

class Journal {
 public:
  struct Write {
    std::byte* at;
    size_t bytes;
    std::byte before[16];  // an instruction stores at most these
  };

  // Before it happens.
  void note(std::byte* at, size_t bytes) {
    Write& write = writes_.emplace_back(at, bytes);
    std::memcpy(write.before, at, bytes);
  }
  // The last one first.
  void undo() const {
    for (auto write = writes_.rbegin(); write != writes_.rend(); ++write) {
      std::memcpy(write->at, write->before, write->bytes);
    }
  }
  const std::vector<Write>& writes() const { return writes_; }

 private:
  std::vector<Write> writes_;
};

}  // namespace banyan::ptx
