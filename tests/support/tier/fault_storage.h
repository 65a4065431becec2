// A file system that fails: it writes half, flips bits, answers late, fills up, loses unsynced
// data, and ends the process in the middle of a call.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "tier/storage.h"

namespace banyan::test {

// Probabilities per call, from 0 to 1.
struct FaultPlan {
  double short_moves = 0;     // reads and writes that move less than requested
  double read_errors = 0;     // EIO
  double write_errors = 0;    // EIO
  double torn_writes = 0;     // report success, but write only a part
  double flipped_reads = 0;   // one bit
  double flipped_writes = 0;  // one bit
  double delays = 0;          // of 1 to 5 ms
  int64_t room = -1;          // bytes that can be allocated in all; -1: any number
  bool full = false;          // writes end with ENOSPC
  bool off = false;           // every change reports success, and none happens
  int64_t kill_at = -1;       // SIGKILL halfway through the change with this number
  int every_change = 0;       // errno of every change; 0: none
};

class FaultStorage final : public Storage {
 public:
  explicit FaultStorage(uint64_t seed) : random_(seed) {}

  // Call between operations of a store.
  void set(const FaultPlan& plan);
  // Simulates a power failure since the last sync of each file: every 512-byte piece written since
  // then is either old or new. Call when no store is open.
  void lose_power();
  int64_t changes() const { return changes_; }
  // For the files.
  struct Undo {
    int64_t offset = 0;
    std::vector<std::byte> before;
  };
  bool chance(double of);
  uint64_t number(uint64_t below);
  FaultPlan plan();
  // Counts a change. True: the process ends during it.
  bool ends_now();
  int take_room(int64_t bytes);  // 0 or ENOSPC
  void note(const std::string& path, Undo undo);
  void forget(const std::string& path);

  std::expected<std::unique_ptr<StorageFile>, int> open(const std::string& path,
                                                        const OpenHow& how) override;
  int make_folders(const std::string& path) override;
  int rename(const std::string& from, const std::string& to) override;
  int remove(const std::string& path) override;
  int remove_folder(const std::string& path) override;
  int sync_folder(const std::string& path) override;
  int set_modified(const std::string& path, int64_t seconds) override;
  std::expected<std::vector<StorageEntry>, int> list(const std::string& path) override;
  std::expected<StorageEntry, int> look(const std::string& path) override;
  std::expected<StorageSpace, int> space(const std::string& path) override;

 private:
  int before_change();

  std::mutex mutex_;
  FaultPlan plan_;
  std::mt19937_64 random_;
  std::map<std::string, std::vector<Undo>> undo_;
  std::atomic<int64_t> changes_ = 0;
};

}  // namespace banyan::test
