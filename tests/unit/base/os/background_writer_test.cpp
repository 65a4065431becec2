// Issue 17: a stderr pipe that nobody reads hung the server.
#include "base/os/background_writer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <string>
#include <utility>

namespace banyan::background_writer_test {
namespace {

using std::chrono::milliseconds;

struct Pipe {
  Pipe() { EXPECT_EQ(pipe2(ends.data(), O_CLOEXEC), 0); }
  ~Pipe() {
    for (int end : ends) {
      if (end >= 0) close(end);
    }
  }
  void close_reader() { close(std::exchange(ends[0], -1)); }
  // At least `count` bytes, in pieces as they come.
  std::string read_bytes(size_t count) {
    std::string text;
    std::array<char, 4096> buffer;
    while (text.size() < count) {
      ssize_t got = read(ends[0], buffer.data(), buffer.size());
      if (got <= 0) break;
      text.append(buffer.data(), static_cast<size_t>(got));
    }
    return text;
  }
  // Whether there is more to read, or will be soon.
  bool has_more() const {
    pollfd waiting = {.fd = ends[0], .events = POLLIN, .revents = 0};
    return poll(&waiting, 1, 20'000) == 1;
  }
  std::array<int, 2> ends = {-1, -1};
};

TEST(BackgroundWriter, WritesEverythingInOrder) {
  Pipe pipe;
  BackgroundWriter writer(pipe.ends[1]);
  std::string all;
  for (int i = 0; i < 1000; ++i) {
    writer.write(std::to_string(i) + "\n");
    all += std::to_string(i) + "\n";
  }
  EXPECT_EQ(pipe.read_bytes(all.size()), all);
  EXPECT_TRUE(writer.flush(milliseconds(20000)));
}

TEST(BackgroundWriter, APipeThatNobodyReadsHoldsNobodyUpAndLossesAreReported) {
  constexpr int kLines = 100'000;
  Pipe pipe;
  ASSERT_GE(fcntl(pipe.ends[1], F_SETPIPE_SZ, 4096), 4096);
  int flags = fcntl(pipe.ends[1], F_GETFL);
  BackgroundWriter writer(pipe.ends[1], 10'000);
  const std::string line = "a line of twenty-one\n";
  for (int i = 0; i < kLines; ++i) writer.write(line);
  EXPECT_FALSE(writer.flush(milliseconds(1)));
  EXPECT_EQ(fcntl(pipe.ends[1], F_GETFL), flags);
  // Now somebody reads: whole lines, and how many there were besides.
  size_t accounted = 0, lost = 0;
  std::string text;
  while (accounted < kLines && pipe.has_more()) {
    text += pipe.read_bytes(1);
    size_t begin = 0;
    for (size_t end; (end = text.find('\n', begin)) != text.npos; begin = end + 1) {
      std::string one = text.substr(begin, end + 1 - begin);
      if (one != line) {
        ASSERT_TRUE(one.starts_with("banyan: ")) << one;
        lost += std::stoul(one.substr(8));
        accounted += std::stoul(one.substr(8));
      } else {
        ++accounted;
      }
    }
    text.erase(0, begin);
  }
  EXPECT_EQ(accounted, static_cast<size_t>(kLines));
  EXPECT_GT(lost, 0U);
}

TEST(BackgroundWriter, ItsEndDoesNotWaitForAReader) {
  Pipe pipe;
  BackgroundWriter writer(pipe.ends[1]);
  writer.write(std::string(1 << 20, 'x'));
  EXPECT_FALSE(writer.flush(milliseconds(1)));
  pipe.ends[1] = -1;  // for the thread, which may use it as long as the process lives
}

TEST(BackgroundWriter, AReaderThatHasGoneOrAFullDiskIsNoError) {
  Pipe pipe;
  pipe.close_reader();
  int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  for (int descriptor : {pipe.ends[1], full, 1 << 20}) {
    BackgroundWriter writer(descriptor);
    for (int i = 0; i < 3; ++i) {
      writer.write("a line\n");
      EXPECT_TRUE(writer.flush(milliseconds(20000)));
    }
  }
  close(full);
}

}  // namespace
}  // namespace banyan::background_writer_test
