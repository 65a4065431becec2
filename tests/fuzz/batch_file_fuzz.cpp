// Any file as the output of an earlier batch: it is resumed or refused, and results that were read
// as done are still there after more were written.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/check.h"
#include "program/batch_file.h"

namespace {

using banyan::BatchFile;
using banyan::BatchResult;

constexpr size_t kCount = 4;

struct Reading {
  std::vector<BatchResult> results = std::vector<BatchResult>(kCount);
  std::vector<bool> done = std::vector<bool>(kCount);
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  int file = memfd_create("batch", 0);
  CHECK(file >= 0 && write(file, data, size) == static_cast<ssize_t>(size), "no memory file");
  std::string path = "/proc/self/fd/" + std::to_string(file);
  auto key = [](size_t index) { return std::string(1, static_cast<char>('a' + index)); };
  Reading first, again;
  auto opened = BatchFile::open(path, key, first.results, first.done);
  if (opened) {
    CHECK(opened->write(1, {.variables = {{"x", "y"}}, .text = "z"}).has_value(),
          "no line can be written");
    auto reopened = BatchFile::open(path, key, again.results, again.done);
    CHECK(reopened.has_value(), "what was gone on from is refused");
    first.done[1] = true;
    CHECK(again.done == first.done, "other results are done");
    CHECK(again.results[1].text == "z", "the last line of an input counts");
  }
  close(file);
  return 0;
}
