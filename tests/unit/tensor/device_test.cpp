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

}  // namespace
}  // namespace banyan::device_test
