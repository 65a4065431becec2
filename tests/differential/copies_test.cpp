// Copies of units in every table: those of the portable kernel, byte for byte.
#include <gtest/gtest.h>

#include <cstring>

#include "differential/kernels.h"

namespace banyan::copies_test {
namespace {

using namespace test;  // NOLINT

// A pool of units with random bytes.
struct Pool {
  static constexpr int64_t kUnits = 6;

  Pool(int32_t unit_class, int32_t tokens_per_row, int64_t parts, int64_t part_bytes,
       int64_t row_bytes, Random& random)
      : bytes(kUnits * parts * part_bytes) {
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.below(256));
    form = {.unit_class = unit_class,
            .tokens_per_row = tokens_per_row,
            .parts = parts,
            .part_bytes = part_bytes,
            .row_bytes = row_bytes};
  }
  UnitPool at(std::vector<std::byte>& data) const {
    UnitPool pool = form;
    pool.data = data.data();
    return pool;
  }

  std::vector<std::byte> bytes;
  UnitPool form;
};

TEST(CopyUnits, AreThoseOfPortableInTheirOrder) {
  Random random(5);
  // Pages of rows of words, of single bytes, and of one row for two tokens; slots.
  std::vector<Pool> pools = {{0, 1, 3, 16 * 12, 12, random},
                             {0, 1, 2, 16 * 5, 5, random},
                             {0, 2, 2, 8 * 20, 20, random},
                             {1, 0, 1, 1000, 0, random},
                             {1, 0, 1, 77, 0, random}};
  // The third reads what the first wrote; a part of a page, a whole one, none.
  std::vector<UnitCopy> copies = {{.unit_class = 0, .from = 1, .to = 2, .tokens = 6},
                                  {.unit_class = 1, .from = 5, .to = 0},
                                  {.unit_class = 0, .from = 2, .to = 4, .tokens = 16},
                                  {.unit_class = 1, .from = 0, .to = 3},
                                  {.unit_class = 0, .from = 0, .to = 3, .tokens = 0}};
  auto copied = [&](const KernelTable& table) {
    std::vector<std::vector<std::byte>> data;
    for (const Pool& pool : pools) data.push_back(pool.bytes);
    std::vector<UnitPool> at;
    for (size_t i = 0; i < pools.size(); ++i) at.push_back(pools[i].at(data[i]));
    ThreadPool threads(2);
    table.copy_units({.launch = {.threads = &threads},
                      .pools = at.data(),
                      .pool_count = std::ssize(at),
                      .copies = copies.data(),
                      .copy_count = std::ssize(copies)});
    return data;
  };
  auto expected = copied(*tables().front());
  for (size_t i = 0; i < pools.size(); ++i) EXPECT_NE(expected[i], pools[i].bytes);
  for (const KernelTable* table : tables()) EXPECT_EQ(copied(*table), expected) << table->name;
}

}  // namespace
}  // namespace banyan::copies_test
