// How many bytes may still be written today, in UTC. Kept in a file, so that a restart does not
// reset it. One thread.
#pragma once

#include <cstdint>
#include <string>

#include "tier/storage.h"

namespace banyan {

class WriteBudget {
 public:
  // 0 bytes a day: no limit, and no file.
  WriteBudget(Storage& storage, std::string path, int64_t bytes_per_day);

  // False: the budget is spent.
  bool take(int64_t bytes, int64_t now_s);
  void give_back(int64_t bytes) { written_ -= bytes; }
  int save();  // 0 or errno

 private:
  Storage& storage_;
  std::string path_;
  int64_t per_day_, day_ = 0, written_ = 0, saved_ = 0;
};

}  // namespace banyan
