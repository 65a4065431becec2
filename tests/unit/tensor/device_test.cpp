// Device memory and copies, on the host and on a device whose memory the host cannot read.
#include "tensor/device.h"

#include <gtest/gtest.h>

#include <cstring>

#include "kernels/select.h"

namespace banyan::device_test {
namespace {

TEST(HostDevice, IsFilledAndReadInPlace) {
  const DeviceQueue& queue = host_queue();
  DeviceBlock block(queue, 100);
  EXPECT_EQ(block.data()[99], std::byte{0});
  Staging stage(queue, block.data(), 100);
  EXPECT_EQ(stage.data(), block.data());
  EXPECT_EQ(HostView(queue, block.data(), 100).as<std::byte>(), block.data());
  EXPECT_GT(queue.available_bytes(), 0);
}

TEST(DeviceBlock, MovesAndMayBeEmpty) {
  DeviceBlock none, a(host_queue(), 4096);
  EXPECT_EQ(none.data(), nullptr);
  std::byte* data = a.data();
  DeviceBlock b(std::move(a));
  none = std::move(b);
  EXPECT_EQ(none.data(), data);
  EXPECT_EQ(none.size(), 4096u);
}

TEST(Staging, SendsWhatWasMadeOnTheHostToOtherMemory) {
  DeviceQueue queue(*(*select_kernels("fenced"))->device);
  DeviceBlock block(queue, 3 * sizeof(int));
  Staging stage(queue, block.data(), block.size());
  ASSERT_NE(stage.data(), block.data());
  for (int i = 0; i < 3; ++i) stage.as<int>()[i] = 5 * i;
  stage.upload();
  HostView view(queue, block.data(), block.size());
  queue.synchronise();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(view.as<int>()[i], 5 * i);
}

TEST(DoubleStaging, FillsABufferOnceItsLastUploadIsDone) {
  DeviceQueue queue(*(*select_kernels("fenced"))->device);
  constexpr int kUploads = 5;
  DeviceBlock block(queue, kUploads * sizeof(int));
  {
    DoubleStaging staging(queue, sizeof(int));
    for (int i = 0; i < kUploads; ++i) {
      std::byte* bytes = staging.begin(block.data() + i * sizeof(int), sizeof(int));
      int value = 5 * i;
      std::memcpy(bytes, &value, sizeof(int));
      staging.upload();
    }
  }
  HostView view(queue, block.data(), block.size());
  queue.synchronise();
  for (int i = 0; i < kUploads; ++i) EXPECT_EQ(view.as<int>()[i], 5 * i);
}

TEST(DoubleStaging, GrowsAndNeedsNoBufferOnTheHost) {
  DeviceQueue queue(*(*select_kernels("fenced"))->device);
  DeviceBlock block(queue, 1000);
  DoubleStaging staging(queue, 10);
  for (int bytes : {10, 20, 1000, 5}) {
    std::memset(staging.begin(block.data(), bytes), bytes % 100, bytes);
    staging.upload();
  }
  HostView view(queue, block.data(), block.size());
  queue.synchronise();
  EXPECT_EQ(view.as<char>()[4], 5);
  EXPECT_EQ(view.as<char>()[999], 0);

  DeviceBlock host(host_queue(), 100);
  EXPECT_EQ(DoubleStaging(host_queue(), 10).begin(host.data(), 100), host.data());
}

}  // namespace
}  // namespace banyan::device_test
