#include "tensor/device.h"

#include <algorithm>
#include <cstring>

#include "base/os/memory.h"

namespace banyan {
namespace {

void copy_now(void* /*queue*/, void* to, const void* from, size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

}  // namespace

constinit const DeviceOps kHostDevice = {
    .name = "cpu",
    .host_memory = true,
    .open_queue = []() -> void* { return nullptr; },
    .close_queue = [](void*) {},
    .allocate = [](void*, size_t bytes) { return reserve_memory(bytes); },
    .release = [](void*, std::byte* data, size_t bytes) { release_memory(data, bytes); },
    .upload = copy_now,
    .upload_pinned = copy_now,
    .download = copy_now,
    .synchronise = [](void*) {},
    .available_bytes = [](void*) { return available_memory_bytes(); },
    .mark = [](void*) -> uint64_t { return 0; },
    .reached = [](void*, uint64_t) { return true; },
    .wait = [](void*, uint64_t) {},
    .allocate_host = [](void*, size_t bytes) { return reserve_memory(bytes); },
    .release_host = [](void*, std::byte* data, size_t bytes) { release_memory(data, bytes); },
};

const DeviceQueue& host_queue() {
  static const DeviceQueue kQueue(kHostDevice);
  return kQueue;
}

DeviceBlock::DeviceBlock(const DeviceQueue& queue, size_t bytes) : queue_(&queue), size_(bytes) {
  if (bytes > 0) data_ = queue.ops().allocate(queue.handle(), bytes);
}

DeviceBlock& DeviceBlock::operator=(DeviceBlock&& other) noexcept {
  std::swap(queue_, other.queue_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

DeviceBlock::~DeviceBlock() {
  if (data_ != nullptr) queue_->ops().release(queue_->handle(), data_, size_);
}

HostBlock::HostBlock(const DeviceQueue& queue, size_t bytes) : queue_(&queue), size_(bytes) {
  if (bytes > 0) data_ = queue.ops().allocate_host(queue.handle(), bytes);
}

HostBlock& HostBlock::operator=(HostBlock&& other) noexcept {
  std::swap(queue_, other.queue_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

HostBlock::~HostBlock() {
  if (data_ != nullptr) queue_->ops().release_host(queue_->handle(), data_, size_);
}

Staging::Staging(const DeviceQueue& queue, void* to, size_t bytes)
    : queue_(queue),
      to_(static_cast<std::byte*>(to)),
      bytes_(bytes),
      block_(queue.ops().host_memory ? 0 : bytes) {}

void Staging::upload() {
  if (!queue_.ops().host_memory) queue_.upload(to_, block_.data(), bytes_);
}

DoubleStaging::~DoubleStaging() {
  for (const Buffer& buffer : buffers_) queue_.wait(buffer.copied);
}

std::byte* DoubleStaging::begin(void* to, size_t bytes) {
  to_ = to;
  bytes_ = bytes;
  if (queue_.ops().host_memory) return static_cast<std::byte*>(to);
  Buffer& buffer = buffers_[current_];
  queue_.wait(buffer.copied);
  if (buffer.block.size() < bytes) {
    buffer.block = HostBlock();  // not both at a time
    buffer.block = HostBlock(queue_, std::max(bytes, bytes_min_));
  }
  return buffer.block.data();
}

void DoubleStaging::upload() {
  if (queue_.ops().host_memory) return;
  Buffer& buffer = buffers_[current_];
  queue_.upload_pinned(to_, buffer.block.data(), bytes_);
  buffer.copied = queue_.mark();
  current_ = 1 - current_;
}

HostView::HostView(const DeviceQueue& queue, const void* from, size_t bytes)
    : from_(static_cast<const std::byte*>(from)), block_(queue.ops().host_memory ? 0 : bytes) {
  if (!block_.empty()) queue.download(block_.data(), from, bytes);
}

}  // namespace banyan
