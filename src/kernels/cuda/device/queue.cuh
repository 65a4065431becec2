// A queue of a GPU: the stream that its kernels and copies run on, launches that it has collected
// (kernels/cuda/launch_collector.h), and memory that blocks of threads use while they run.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include "kernels/cuda/attention_items.h"
#include "kernels/cuda/device/tensor_maps.cuh"
#include "kernels/cuda/launch_collector.h"
#include "kernels/cuda/launches.h"
#include "kernels/cuda/logit_statistics.h"
#include "kernels/cuda/upload_ring.h"

namespace banyan::cuda::device {

// A call that failed leaves a GPU that nothing runs on any more.
inline void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  std::abort();
}
#define BANYAN_CHECK_CUDA(call) ::banyan::cuda::device::check((call), #call)

class Graph {
 public:
  // Of what `issue` puts on the stream. Null if the GPU has no memory left for it.
  template <class Issue>
  static std::unique_ptr<Graph> record(cudaStream_t stream, const Issue& issue) {
    cudaGraph_t graph = nullptr;
    BANYAN_CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    issue();
    BANYAN_CHECK_CUDA(cudaStreamEndCapture(stream, &graph));
    cudaGraphExec_t executable = nullptr;
    cudaError_t error = cudaGraphInstantiate(&executable, graph, 0);
    BANYAN_CHECK_CUDA(cudaGraphDestroy(graph));
    if (error == cudaErrorMemoryAllocation) {
      cudaGetLastError();  // forgets it
      return nullptr;
    }
    check(error, "cudaGraphInstantiate");
    return std::unique_ptr<Graph>(new Graph(executable));
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph() { cudaGraphExecDestroy(executable_); }

  void launch(cudaStream_t stream) { BANYAN_CHECK_CUDA(cudaGraphLaunch(executable_, stream)); }

 private:
  explicit Graph(cudaGraphExec_t executable) : executable_(executable) {}

  cudaGraphExec_t executable_;
};

struct Device;  // launches a kernel (cuda.cu)

class Queue {
 public:
  Queue() {
    BANYAN_CHECK_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    BANYAN_CHECK_CUDA(cudaMallocHost(reinterpret_cast<void**>(&uploads_), kUploadBytes));
    BANYAN_CHECK_CUDA(cudaDeviceGetAttribute(&multiprocessors_, cudaDevAttrMultiProcessorCount, 0));
    BANYAN_CHECK_CUDA(cudaMalloc(reinterpret_cast<void**>(&scratch_), kScratchBytes));
  }
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
  ~Queue() {
    synchronise();
    graphs_.clear();
    ring_.drain([](cudaEvent_t copied) { cudaEventDestroy(copied); });
    cudaFreeHost(uploads_);
    for (cudaEvent_t event : marks_) cudaEventDestroy(event);
    for (cudaEvent_t event : events_) cudaEventDestroy(event);
    cudaFree(scratch_);
    cudaStreamDestroy(stream_);
  }

  cudaStream_t stream() const { return stream_; }
  int multiprocessors() const { return multiprocessors_; }
  void synchronise() {
    flush();
    wait();
  }

  // Of the pools that kernels read.
  TensorMaps& maps() { return maps_; }

  // Where launches go.
  LaunchCollector<Device>& collected() { return collected_; }

  // Puts collected launches on the stream: before anything else goes there.
  void flush() {
    const LaunchList& launches = collected_.launches();
    if (!makes_graphs_ || launches.size() < kGraphMin) {
      launches.issue_all(this);
    } else {
      ListKey key = launches.key();
      auto [seen, graph] = graphs_.find(key);
      if (graph == nullptr && seen) graph = record(key);
      graph != nullptr ? graph->launch(stream_) : launches.issue_all(this);
    }
    collected_.clear();
  }

  // Copies through pinned memory, so that `from` may be changed as soon as this returns and the
  // host need not wait for what was launched before.
  void upload(void* to, const void* from, size_t bytes) {
    flush();
    for (size_t done = 0; done < bytes;) {
      size_t part = bytes - done < ring_.part_max() ? bytes - done : ring_.part_max();
      std::byte* place = uploads_ + ring_.take(part, [this](cudaEvent_t copied) {
        BANYAN_CHECK_CUDA(cudaEventSynchronize(copied));
        events_.push_back(copied);
      });
      std::memcpy(place, static_cast<const std::byte*>(from) + done, part);
      BANYAN_CHECK_CUDA(cudaMemcpyAsync(static_cast<std::byte*>(to) + done, place, part,
                                        cudaMemcpyHostToDevice, stream_));
      ring_.started(record_event());
      done += part;
    }
  }

  // `from` is pinned, and is read when the stream gets there.
  void upload_pinned(void* to, const void* from, size_t bytes) {
    flush();
    BANYAN_CHECK_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_));
  }

  // The end of what is on the stream now, and whether the GPU has got there.
  uint64_t mark() {
    flush();
    marks_.push_back(record_event());
    return ++marked_;
  }
  bool reached(uint64_t mark) {
    while (!marks_.empty()) {
      cudaError_t state = cudaEventQuery(marks_.front());
      if (state == cudaErrorNotReady) break;
      BANYAN_CHECK_CUDA(state);
      drop_mark();
    }
    return reached() >= mark;
  }
  // Work behind the mark goes on.
  void wait(uint64_t mark) {
    while (reached() < mark) {
      BANYAN_CHECK_CUDA(cudaEventSynchronize(marks_.front()));
      drop_mark();
    }
  }

  // kScratchBytes for the next launch. Kernels of a stream run one after the other, so that all of
  // them share it. It never grows, so that no step can run out of memory: a kernel whose blocks
  // need more than fits runs in fewer blocks.
  static constexpr size_t kScratchBytes = size_t{256} << 20;
  static_assert(kScratchBytes >= kPartScratchBytes && kScratchBytes >= kLogitScratchBytes);
  std::byte* scratch() const { return scratch_; }

 private:
  static constexpr size_t kUploadBytes = size_t{32} << 20;
  static constexpr size_t kGraphMin = 8;  // launches

  static bool wants_graphs() {
    const char* value = std::getenv("BANYAN_CUDA_GRAPHS");
    return value == nullptr || std::strcmp(value, "0") != 0;
  }
  void wait() const { BANYAN_CHECK_CUDA(cudaStreamSynchronize(stream_)); }
  uint64_t reached() const { return marked_ - marks_.size(); }
  void drop_mark() {
    events_.push_back(marks_.front());
    marks_.pop_front();
  }
  // At what is on the stream now.
  cudaEvent_t record_event() {
    cudaEvent_t event = nullptr;
    if (events_.empty()) {
      BANYAN_CHECK_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    } else {
      event = events_.back();
      events_.pop_back();
    }
    BANYAN_CHECK_CUDA(cudaEventRecord(event, stream_));
    return event;
  }
  Graph* record(const ListKey& key) {
    std::unique_ptr<Graph> graph =
        Graph::record(stream_, [this] { collected_.launches().issue_all(this); });
    makes_graphs_ = graph != nullptr;
    return makes_graphs_ ? &graphs_.insert(key, std::move(graph)) : nullptr;
  }

  cudaStream_t stream_ = nullptr;
  LaunchCollector<Device> collected_;
  GraphCache<Graph> graphs_;
  bool makes_graphs_ = wants_graphs();
  std::deque<cudaEvent_t> marks_;  // that are not known to be reached
  uint64_t marked_ = 0;
  std::vector<cudaEvent_t> events_;  // free ones
  int multiprocessors_ = 0;
  TensorMaps maps_;
  std::byte* uploads_ = nullptr;  // pinned
  UploadRing<cudaEvent_t> ring_{kUploadBytes};
  std::byte* scratch_ = nullptr;
};

inline Queue& queue_of(void* queue) {
  return *static_cast<Queue*>(queue);
}

struct LaunchShape {
  int64_t blocks;
  int threads;
  size_t shared_bytes = 0;
  int cluster = 1;
};

// The configuration of a launch.
struct LaunchConfig {
  LaunchConfig(const LaunchShape& shape, cudaStream_t stream) {
    attributes[0].id = cudaLaunchAttributeClusterDimension;
    attributes[0].val.clusterDim = {static_cast<unsigned>(shape.cluster), 1, 1};
    config.gridDim = static_cast<unsigned>(shape.blocks);
    config.blockDim = static_cast<unsigned>(shape.threads);
    config.dynamicSmemBytes = shape.shared_bytes;
    config.stream = stream;
    config.attrs = attributes;
    config.numAttrs = shape.cluster > 1 ? 1 : 0;
  }
  LaunchConfig(const LaunchConfig&) = delete;
  LaunchConfig& operator=(const LaunchConfig&) = delete;

  // Its blocks may begin while the kernel before it runs.
  void begin_early() {
    cudaLaunchAttribute& early = attributes[config.numAttrs++];
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
  }

  cudaLaunchAttribute attributes[2] = {};
  cudaLaunchConfig_t config = {};
};

// Launches a kernel early: before it touches what others write, each of its blocks must
// wait_for_earlier_kernels(), and so must every block before it ends.
template <class... Arguments>
void launch_early(Queue& queue, void (*function)(Arguments...), const LaunchShape& shape,
                  const Arguments&... arguments) {
  LaunchConfig launch(shape, queue.stream());
  launch.begin_early();
  BANYAN_CHECK_CUDA(cudaLaunchKernelEx(&launch.config, function, arguments...));
}

// Asks for the shared memory of a kernel whose layout of it is K, once: it takes longer than a
// launch.
template <class K>
void ask_for_shared(void (*function)(K)) {
  static const bool kAsked = [function] {
    BANYAN_CHECK_CUDA(cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                           static_cast<int>(K::kSharedBytes)));
    // Or the GPU may keep so much for its cache that fewer blocks share a multiprocessor.
    BANYAN_CHECK_CUDA(cudaFuncSetAttribute(function, cudaFuncAttributePreferredSharedMemoryCarveout,
                                           cudaSharedmemCarveoutMaxShared));
    return true;
  }();
  static_cast<void>(kAsked);
}

template <class K>
void launch_early(Queue& queue, void (*function)(K), const K& kernel, int64_t blocks,
                  int cluster = 1) {
  ask_for_shared(function);
  launch_early(queue, function, {blocks, K::kThreads, K::kSharedBytes, cluster}, kernel);
}

// How many clusters of the kernel's blocks run at a time; 0 if the GPU does not say.
template <class K>
int resident_clusters(void (*function)(K), int cluster) {
  int clusters = 0;
  ask_for_shared(function);
  LaunchConfig launch({cluster, K::kThreads, K::kSharedBytes, cluster}, nullptr);
  if (cudaOccupancyMaxActiveClusters(&clusters, function, &launch.config) == cudaSuccess) {
    return clusters;
  }
  cudaGetLastError();  // forgets it
  return 0;
}

}  // namespace banyan::cuda::device
