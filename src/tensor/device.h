// A device: where weights, states and activations live, and how bytes are copied to and from it. A
// kernel table is tied to the device whose memory its kernels use. Host code passes device pointers
// around, but reads them only through these functions or if `host_memory` is set.
//
// Kernels and copies are enqueued and run in order. One thread drives a queue.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace banyan {

struct DeviceOps {
  const char* name = "";
  // Enqueued work is complete when the call returns, and the host can access device memory.
  bool host_memory = false;

  void* (*open_queue)() = nullptr;  // may return null
  void (*close_queue)(void* queue) = nullptr;
  // Zeroed and page-aligned. Aborts when memory runs out.
  std::byte* (*allocate)(void* queue, size_t bytes) = nullptr;
  void (*release)(void* queue, std::byte* data, size_t bytes) = nullptr;
  // `from` may be changed as soon as this returns.
  void (*upload)(void* queue, void* to, const void* from, size_t bytes) = nullptr;
  // Without a copy on the host: `from`, of allocate_host(), may be changed only once the queue is
  // synchronised or a later mark reached.
  void (*upload_pinned)(void* queue, void* to, const void* from, size_t bytes) = nullptr;
  // `to` is valid once the queue is synchronised, or a later mark reached. Unless it is of
  // allocate_host(), this may wait for all work on the queue.
  void (*download)(void* queue, void* to, const void* from, size_t bytes) = nullptr;
  // Waits for all work on the queue.
  void (*synchronise)(void* queue) = nullptr;
  // Bytes that may still be allocated.
  int64_t (*available_bytes)(void* queue) = nullptr;
  // A marker for the end of the work now on the queue. Querying it says, without waiting, whether
  // that work is complete.
  uint64_t (*mark)(void* queue) = nullptr;
  bool (*reached)(void* queue, uint64_t mark) = nullptr;
  void (*wait)(void* queue, uint64_t mark) = nullptr;
  // Host memory from and to which the device copies directly; pinned if necessary.
  std::byte* (*allocate_host)(void* queue, size_t bytes) = nullptr;
  void (*release_host)(void* queue, std::byte* data, size_t bytes) = nullptr;
};

// Host memory: reserved on allocation, committed on first touch.
extern const DeviceOps kHostDevice;

// Owns a queue of a device. Must outlive the blocks allocated from it.
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
  void upload_pinned(void* to, const void* from, size_t bytes) const {
    ops_.upload_pinned(handle_, to, from, bytes);
  }
  void download(void* to, const void* from, size_t bytes) const {
    ops_.download(handle_, to, from, bytes);
  }
  void synchronise() const { ops_.synchronise(handle_); }
  uint64_t mark() const { return ops_.mark(handle_); }
  bool reached(uint64_t mark) const { return ops_.reached(handle_, mark); }
  void wait(uint64_t mark) const { ops_.wait(handle_, mark); }
  int64_t available_bytes() const { return ops_.available_bytes(handle_); }

 private:
  const DeviceOps& ops_;
  void* handle_;
};

// The host's own queue, which needs no owner.
const DeviceQueue& host_queue();

// Owns a block of device memory.
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

// The same for host memory that the device copies from and to.
class HostBlock {
 public:
  HostBlock() = default;
  HostBlock(const DeviceQueue& queue, size_t bytes);
  HostBlock(HostBlock&& other) noexcept { *this = std::move(other); }
  HostBlock& operator=(HostBlock&& other) noexcept;
  ~HostBlock();

  std::byte* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  const DeviceQueue* queue_ = nullptr;
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// Host memory in which to prepare the bytes of [to, to + bytes) of a device. It is that memory
// itself if the host can access it, otherwise a buffer that upload() copies.
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

// Staging of many uploads, double buffered: while the device copies one pinned buffer, the host
// fills the other. Buffers are reused, since fresh memory costs more than all that is done to it.
class DoubleStaging {
 public:
  // Buffers have at least `bytes`, and exist once there is something to upload.
  DoubleStaging(const DeviceQueue& queue, size_t bytes) : queue_(queue), bytes_min_(bytes) {}
  DoubleStaging(const DoubleStaging&) = delete;
  DoubleStaging& operator=(const DoubleStaging&) = delete;
  ~DoubleStaging();

  // Where to prepare the bytes of [to, to + bytes), undefined as yet, that upload() then sends.
  std::byte* begin(void* to, size_t bytes);
  void upload();

 private:
  struct Buffer {
    HostBlock block;
    uint64_t copied = 0;  // the mark of its last upload
  };
  const DeviceQueue& queue_;
  size_t bytes_min_;
  Buffer buffers_[2];
  int current_ = 0;
  void* to_ = nullptr;
  size_t bytes_ = 0;
};

// A host view of device bytes, valid from the next synchronise of the queue: in place if the host
// can access them, otherwise a copy.
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
