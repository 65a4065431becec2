// Where weights, states and activations live, and how bytes get there and back. A kernel table
// comes with the device whose memory its kernels read and write. The host passes pointers into such
// memory around; it reads them only through these functions, or where `host_memory` lets it.
//
// Work is put on a queue and done in its order, kernels and copies alike. One thread drives a
// queue.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace banyan {

struct DeviceOps {
  const char* name = "";
  // What is put on a queue is done when the call returns, and memory of the device is the host's.
  bool host_memory = false;

  void* (*open_queue)() = nullptr;  // may give null
  void (*close_queue)(void* queue) = nullptr;
  // Zeros, at the beginning of a page. Aborts where there is no more.
  std::byte* (*allocate)(void* queue, size_t bytes) = nullptr;
  void (*release)(void* queue, std::byte* data, size_t bytes) = nullptr;
  // `from` may change as soon as this returns.
  void (*upload)(void* queue, void* to, const void* from, size_t bytes) = nullptr;
  // `to` is written once the queue is synchronised.
  void (*download)(void* queue, void* to, const void* from, size_t bytes) = nullptr;
  // Waits for all that is on the queue.
  void (*synchronise)(void* queue) = nullptr;
  // What may still be allocated.
  int64_t (*available_bytes)(void* queue) = nullptr;
};

// The processor's own memory: reserved by allocating, committed by touching.
extern const DeviceOps kHostDevice;

// Owns a queue of a device. Blocks must not outlive the queue that they came from.
class DeviceQueue {
 public:
  explicit DeviceQueue(const DeviceOps& ops) : ops_(ops), handle_(ops.open_queue()) {}
  DeviceQueue(const DeviceQueue&) = delete;
  DeviceQueue& operator=(const DeviceQueue&) = delete;
  ~DeviceQueue() { ops_.close_queue(handle_); }

  const DeviceOps& ops() const { return ops_; }
  void* handle() const { return handle_; }

  void upload(void* to, const void* from, size_t bytes) const {
    ops_.upload(handle_, to, from, bytes);
  }
  void download(void* to, const void* from, size_t bytes) const {
    ops_.download(handle_, to, from, bytes);
  }
  void synchronise() const { ops_.synchronise(handle_); }
  int64_t available_bytes() const { return ops_.available_bytes(handle_); }

 private:
  const DeviceOps& ops_;
  void* handle_;
};

// The queue of the host itself, which needs no owner.
const DeviceQueue& host_queue();

// Owns memory of a device.
class DeviceBlock {
 public:
  DeviceBlock() = default;
  DeviceBlock(const DeviceQueue& queue, size_t bytes);
  DeviceBlock(DeviceBlock&& other) noexcept { *this = std::move(other); }
  DeviceBlock& operator=(DeviceBlock&& other) noexcept;
  ~DeviceBlock();

  std::byte* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  const DeviceQueue* queue_ = nullptr;
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// Host memory in which the bytes of [to, to + bytes) of a device are made: that memory itself where
// it is the host's, else a block that upload() sends.
class Staging {
 public:
  Staging(const DeviceQueue& queue, void* to, size_t bytes);

  std::byte* data() { return queue_.ops().host_memory ? to_ : block_.data(); }
  template <class T>
  T* as() {
    return reinterpret_cast<T*>(data());
  }
  void upload();

 private:
  const DeviceQueue& queue_;
  std::byte* to_;
  size_t bytes_;
  std::vector<std::byte> block_;
};

// Bytes of a device as the host reads them, from the next synchronise() of the queue on: where they
// lie if that memory is the host's, else a copy.
class HostView {
 public:
  HostView(const DeviceQueue& queue, const void* from, size_t bytes);

  template <class T>
  const T* as() const {
    return reinterpret_cast<const T*>(block_.empty() ? from_ : block_.data());
  }

 private:
  const std::byte* from_;
  std::vector<std::byte> block_;
};

}  // namespace banyan
