#include "kernels/fenced/fenced.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/os/memory.h"
#include "base/padding.h"
#include "kernels/cuda/emulated/emulated.h"
#include "kernels/cuda/launches.h"
#include "kernels/portable/portable.h"

namespace banyan::fenced {
namespace {

// The largest of all argument structs.
constexpr size_t kArgsBytes = 320;

struct Call {
  void (*run)(const Call& call) = nullptr;
  bool is_kernel = false;
  alignas(16) std::byte args[kArgsBytes];
  std::vector<std::byte> bytes;  // data of an upload
};

struct Block {
  std::byte* data;
  size_t size;
};

void protect(const Block& block, int protection) {
  CHECK(::mprotect(block.data, block.size, protection) == 0, "{} bytes", block.size);
}

struct Queue {
  std::vector<Call> calls;      // that have not run
  cuda::GraphCache<int> lists;  // of kernels in a row; keeps no graphs
  uint64_t run = 0;             // calls that have
  std::vector<Block> blocks;
};

Queue& queue_of(void* queue) {
  CHECK(queue != nullptr, "a kernel of the fenced table without its queue");
  return *static_cast<Queue*>(queue);
}

// Enqueues `run` with a copy of `args`.
template <class Args>
Call& push(void* queue, const Args& args, void (*run)(const Call& call)) {
  static_assert(sizeof(Args) <= kArgsBytes);
  Call& call = queue_of(queue).calls.emplace_back();
  call.run = run;
  std::memset(call.args, 0, sizeof(call.args));
  copy_without_padding(call.args, args);
  return call;
}

template <class Args>
void push_kernel(const Args& args, void (*run)(const Call& call)) {
  push(args.launch.queue, args, run).is_kernel = true;
}

std::atomic<uint64_t> all_lists = 0, repeated_lists = 0;

// Kernels in a row, between copies.
void count_lists(Queue& queue, std::span<const Call> calls) {
  auto is_kernel = [](const Call& call) { return call.is_kernel; };
  for (auto begin = std::ranges::find_if(calls, is_kernel); begin != calls.end();) {
    auto end = std::find_if_not(begin, calls.end(), is_kernel);
    cuda::ListKey key;
    for (const Call& call : std::span(begin, end)) {
      key.add(reinterpret_cast<uintptr_t>(call.run));
      key.add_bytes(call.args, kArgsBytes);
    }
    ++all_lists;
    if (queue.lists.find(key).seen) ++repeated_lists;
    begin = std::find_if(end, calls.end(), is_kernel);
  }
}

template <class Args>
const Args& args_of(const Call& call) {
  return *std::launder(reinterpret_cast<const Args*>(call.args));
}

struct CopyArgs {
  void* to;
  const void* from;
  size_t bytes;
};

void upload(void* queue, void* to, const void* from, size_t bytes) {
  Call& call = push(queue, CopyArgs{to, nullptr, bytes}, [](const Call& c) {
    if (!c.bytes.empty()) std::memcpy(args_of<CopyArgs>(c).to, c.bytes.data(), c.bytes.size());
  });
  const auto* data = static_cast<const std::byte*>(from);
  if (bytes > 0) call.bytes.assign(data, data + bytes);
}

// The device reads and writes pinned memory when it gets there.
void copy_pinned(void* queue, void* to, const void* from, size_t bytes) {
  push(queue, CopyArgs{to, from, bytes}, [](const Call& c) {
    const CopyArgs& copy = args_of<CopyArgs>(c);
    if (copy.bytes > 0) std::memcpy(copy.to, copy.from, copy.bytes);
  });
}

// Runs the first calls, and no others: what was launched after them must not be needed yet.
void run(Queue& queue, size_t count) {
  if (count == 0) return;
  std::span<const Call> calls = std::span(queue.calls).first(count);
  count_lists(queue, calls);
  for (const Block& block : queue.blocks) protect(block, PROT_READ | PROT_WRITE);
  for (const Call& call : calls) call.run(call);
  for (const Block& block : queue.blocks) protect(block, PROT_NONE);
  queue.calls.erase(queue.calls.begin(), queue.calls.begin() + static_cast<ptrdiff_t>(count));
  queue.run += count;
}

void synchronise(void* handle) {
  run(queue_of(handle), queue_of(handle).calls.size());
}

uint64_t mark(void* handle) {
  return queue_of(handle).run + queue_of(handle).calls.size();
}

bool reached(void* handle, uint64_t mark) {
  return queue_of(handle).run >= mark;
}

void wait(void* handle, uint64_t mark) {
  if (!reached(handle, mark)) run(queue_of(handle), mark - queue_of(handle).run);
}

std::byte* allocate(void* queue, size_t bytes) {
  Block block = {reserve_memory(bytes), bytes};
  protect(block, PROT_NONE);
  queue_of(queue).blocks.push_back(block);
  return block.data;
}

// The block is freed late, since pending calls may use it.
void release(void* handle, std::byte* data, size_t bytes) {
  Queue& queue = queue_of(handle);
  synchronise(handle);
  std::erase_if(queue.blocks, [&](const Block& block) { return block.data == data; });
  release_memory(data, bytes);
}

constinit const DeviceOps kDevice = {
    .name = "fenced",
    .open_queue = []() -> void* { return new Queue; },
    .close_queue =
        [](void* handle) {
          synchronise(handle);
          CHECK(queue_of(handle).blocks.empty(), "blocks outlive their queue");
          delete static_cast<Queue*>(handle);
        },
    .allocate = allocate,
    .release = release,
    .upload = upload,
    .upload_pinned = copy_pinned,
    .download = copy_pinned,
    .synchronise = synchronise,
    .available_bytes = [](void*) { return available_memory_bytes(); },
    .mark = mark,
    .reached = reached,
    .wait = wait,
    .allocate_host = [](void*, size_t bytes) { return reserve_memory(bytes); },
    .release_host = [](void*, std::byte* data, size_t bytes) { release_memory(data, bytes); },
};

using Table = const KernelTable& (*)();

// Enqueues the kernel in a slot of another table.
template <Table Of, auto Slot>
struct Queued;
template <Table Of, class Args, void (*KernelTable::*Slot)(const Args&)>
struct Queued<Of, Slot> {
  static void run(const Args& args) {
    push_kernel(args, [](const Call& call) { (Of().*Slot)(args_of<Args>(call)); });
  }
};

template <Table Of, GemmKernel KernelTable::* Format>
GemmKernel queued_gemm() {
  GemmKernel kernel = Of().*Format;
  if (!kernel.exists()) return kernel;
  kernel.gather = [](const GatherArgs& args) {
    push_kernel(args, [](const Call& call) { (Of().*Format).gather(args_of<GatherArgs>(call)); });
  };
  kernel.run = [](const GemmArgs& args) {
    push_kernel(args, [](const Call& call) { (Of().*Format).run(args_of<GemmArgs>(call)); });
  };
  if (kernel.gates == nullptr) return kernel;
  kernel.run_gated = [](const GatedGemmArgs& args) {
    push(args.product.launch.queue, args, [](const Call& call) {
      (Of().*Format).run_gated(args_of<GatedGemmArgs>(call));
    }).is_kernel = true;
  };
  return kernel;
}

// The kernels of a table of host memory, on the fenced device.
template <Table Of>
KernelTable fence(const char* name) {
  using T = KernelTable;
  return {
      .name = name,
      .device = &kDevice,
      .gemm_f32 = queued_gemm<Of, &T::gemm_f32>(),
      .gemm_bf16 = queued_gemm<Of, &T::gemm_bf16>(),
      .gemm_f16 = queued_gemm<Of, &T::gemm_f16>(),
      .gemm_int8 = queued_gemm<Of, &T::gemm_int8>(),
      .gemm_int4 = queued_gemm<Of, &T::gemm_int4>(),
      .gemm_uint4 = queued_gemm<Of, &T::gemm_uint4>(),
      .gemm_mxfp4 = queued_gemm<Of, &T::gemm_mxfp4>(),
      .gemm_fp8 = queued_gemm<Of, &T::gemm_fp8>(),
      .gemm_q2 = queued_gemm<Of, &T::gemm_q2>(),
      .gemm_q3 = queued_gemm<Of, &T::gemm_q3>(),
      .gemm_q4 = queued_gemm<Of, &T::gemm_q4>(),
      .gemm_q5 = queued_gemm<Of, &T::gemm_q5>(),
      .gemm_q6 = queued_gemm<Of, &T::gemm_q6>(),
      .gemm_iq4 = queued_gemm<Of, &T::gemm_iq4>(),
      .rms_norm = Queued<Of, &T::rms_norm>::run,
      .rope_angles = Queued<Of, &T::rope_angles>::run,
      .rope = Queued<Of, &T::rope>::run,
      .silu_mul = Queued<Of, &T::silu_mul>::run,
      .scale = Queued<Of, &T::scale>::run,
      .gate_mul = Queued<Of, &T::gate_mul>::run,
      .add = Queued<Of, &T::add>::run,
      .logit_stats = Queued<Of, &T::logit_stats>::run,
      .route = Queued<Of, &T::route>::run,
      .sort_experts = Queued<Of, &T::sort_experts>::run,
      .combine_experts = Queued<Of, &T::combine_experts>::run,
      .copy_rows = Queued<Of, &T::copy_rows>::run,
      .add_rows = Queued<Of, &T::add_rows>::run,
      .copy_units = Queued<Of, &T::copy_units>::run,
      .page_write = Queued<Of, &T::page_write>::run,
      .place_heads = Queued<Of, &T::place_heads>::run,
      .page_read = Queued<Of, &T::page_read>::run,
      .key_sums = Queued<Of, &T::key_sums>::run,
      .block_scores = Queued<Of, &T::block_scores>::run,
      .block_maxima = Queued<Of, &T::block_maxima>::run,
      .select_keys = Queued<Of, &T::select_keys>::run,
      .index_scores = Queued<Of, &T::index_scores>::run,
      .hadamard = Queued<Of, &T::hadamard>::run,
      .layer_norm = Queued<Of, &T::layer_norm>::run,
      .attention = Queued<Of, &T::attention>::run,
      .latent_attention = Queued<Of, &T::latent_attention>::run,
      .linear_attention = Queued<Of, &T::linear_attention>::run,
      .delta_attention = Queued<Of, &T::delta_attention>::run,
      .delta_gates = Queued<Of, &T::delta_gates>::run,
      .state_space = Queued<Of, &T::state_space>::run,
      .state_space_gates = Queued<Of, &T::state_space_gates>::run,
      .short_conv = Queued<Of, &T::short_conv>::run,
      .draw = Queued<Of, &T::draw>::run,
      .resolve_tokens = Queued<Of, &T::resolve_tokens>::run,
      .follow_drafts = Queued<Of, &T::follow_drafts>::run,
      .pool_keys = Queued<Of, &T::pool_keys>::run,
      .pooled_attention = Queued<Of, &T::pooled_attention>::run,
  };
}

}  // namespace

const KernelTable& table() {
  static const KernelTable kTable = fence<portable::table>("fenced");
  return kTable;
}

const KernelTable& emulated_cuda() {
  static const KernelTable kTable = fence<cuda::emulated::table>("cuda_emulated");
  return kTable;
}

Lists lists() {
  return {all_lists, repeated_lists};
}

}  // namespace banyan::fenced
