// What ranks tell each other while they load: plain values, and what went wrong.
#pragma once

#include <cstring>
#include <type_traits>
#include <vector>

#include "banyan/status.h"
#include "base/signed.h"
#include "dist/comm.h"

namespace banyan {

// The values of all ranks, in rank order. Only `mine` if `comm` exchanges nothing.
template <class T>
std::vector<T> gather(Comm& comm, const T& mine) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) % sizeof(float) == 0);
  if (!comm.exchanges()) return {mine};
  auto count = as_size(comm.rank().count);
  std::vector<T> all(count);
  std::vector<float> bytes(count * sizeof(T) / sizeof(float));
  std::vector<int64_t> sizes(count, sizeof(T) / sizeof(float));
  auto* own = reinterpret_cast<std::byte*>(bytes.data()) + as_size(comm.rank().index) * sizeof(T);
  std::memcpy(own, &mine, sizeof(T));
  comm.all_gather(sizes, bytes.data());
  std::memcpy(static_cast<void*>(all.data()), bytes.data(), count * sizeof(T));
  return all;
}

// The same status on all ranks: an error if any of them has one, that of the first such rank.
Status agree(Comm& comm, const Status& mine);

}  // namespace banyan
