#include "ptx/interpreted.h"

#include <cxxabi.h>

#include <cstdlib>
#include <deque>
#include <memory>
#include <mutex>
#include <typeinfo>

#include "kernels/cuda/attention_items.h"
#include "kernels/cuda/emulated/device.h"
#include "kernels/cuda/fragment_gemm.h"
#include "kernels/cuda/horizontally_fused.h"
#include "kernels/cuda/table.h"
#include "ptx/tensor_map.h"

namespace banyan::ptx {
namespace {

std::string demangled(const char* name) {
  int status = 0;
  char* text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  std::string copy = status == 0 ? text : name;
  std::free(text);
  return copy;
}

// "run<Kernel>" of "void banyan::cuda::device::run<Kernel>(Kernel, ...)"
std::string short_name(const std::string& entry) {
  std::string_view text = entry;
  for (std::string_view prefix : {"void ", "banyan::cuda::device::"}) {
    if (text.starts_with(prefix)) text.remove_prefix(prefix.size());
  }
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    depth += text[i] == '<' ? 1 : text[i] == '>' ? -1 : 0;
    if (depth == 0 && text[i] == '(') return std::string(text.substr(0, i));
  }
  return std::string(text);
}

// "run<Kernel>", as a demangler writes it.
template <class Kernel>
std::string entry_of(const char* function) {
  std::string kernel = demangled(typeid(Kernel).name());
  return fmt::format("{}<{}{}>", function, kernel, kernel.ends_with('>') ? " " : "");
}

// Entries by their short names, with how often each was launched.
struct Entries {
  struct Entry {
    std::string mangled;
    int launches = 0;
  };

  Entries() {
    for (const std::string& name : cuda_module()->names()) {
      all[short_name(demangled(name.c_str()))] = {name};
    }
  }
  std::map<std::string, Entry> all;
};
Entries& entries() {
  static Entries entries;
  return entries;
}

// One launch at a time: threads share the module and the counts.
std::mutex& mutex() {
  static std::mutex mutex;
  return mutex;
}

// Memory of a launch that its results do not count: filled with NaN, and not compared.
class Scratch {
 public:
  explicit Scratch(size_t bytes) : bytes_(bytes), data_(new std::byte[bytes + kAlignment]) {}
  std::byte* data() const {
    auto address = std::bit_cast<uintptr_t>(data_.get());
    return data_.get() + (kAlignment - address % kAlignment) % kAlignment;
  }
  void poison(size_t bytes) { std::memset(data(), 0xff, bytes); }
  bool holds(const std::byte* at) const { return at >= data() && at < data() + bytes_; }

 private:
  static constexpr size_t kAlignment = 256;
  size_t bytes_;
  std::unique_ptr<std::byte[]> data_;
};

// Whether two values are the same, or both NaN: processors differ in the bits of a NaN.
bool same(const std::byte* a, const std::byte* b, size_t bytes) {
  if (std::memcmp(a, b, bytes) == 0) return true;
  if (bytes % sizeof(float) != 0) return false;
  for (size_t i = 0; i < bytes; i += sizeof(float)) {
    float x, y;
    std::memcpy(&x, a + i, sizeof(x));
    std::memcpy(&y, b + i, sizeof(y));
    bool equal = std::memcmp(&x, &y, sizeof(x)) == 0 || (x != x && y != y);
    if (!equal) return false;
  }
  return true;
}

// Fails unless what the journal wrote is what `emulate` writes in its place.
template <class Emulate>
void compare(const std::string& name, const Journal& journal, const Scratch& scratch,
             const Emulate& emulate) {
  std::vector<std::byte> written;
  for (const Journal::Write& write : journal.writes()) {
    written.insert(written.end(), write.at, write.at + write.bytes);
  }
  journal.undo();
  emulate();
  size_t offset = 0;
  for (const Journal::Write& write : journal.writes()) {
    const std::byte* ours = written.data() + offset;
    offset += write.bytes;
    if (scratch.holds(write.at) || same(ours, write.at, write.bytes)) continue;
    uint64_t here = 0, there = 0;
    std::memcpy(&here, ours, std::min(write.bytes, sizeof(here)));
    std::memcpy(&there, write.at, std::min(write.bytes, sizeof(there)));
    fail("{}: {} bytes at {} are {:#x} on a GPU and {:#x} emulated", name, write.bytes,
         fmt::ptr(write.at), here, there);
  }
}

struct Device {
  static constexpr uint32_t kBlocks = 3;  // as many as fill it: few, so that items queue

  template <class Kernel>
  static void launch(void* queue, const Kernel& kernel) {
    cuda::Shape shape = kernel.shape();
    auto blocks =
        static_cast<uint32_t>(shape.blocks > 0 && shape.blocks < kBlocks ? shape.blocks : kBlocks);
    size_t scratch_bytes = (shape.scratch_bytes + 255) / 256 * 256;
    Scratch scratch(scratch_bytes * blocks);
    scratch.poison(scratch_bytes * blocks);
    std::byte* address = scratch_bytes > 0 ? scratch.data() : nullptr;
    std::string name = entry_of<Kernel>("run");
    run(
        name, scratch,
        [&](Launch launch) {
          launch.blocks = blocks;
          launch.threads = cuda::kBlockThreads;
          launch.shared_bytes = shape.shared_bytes;
          launch.parameters = parameter_block(kernel, address, scratch_bytes);
          start(name, launch);
        },
        [&] { cuda::emulated::Device::launch(queue, kernel); });
  }

  struct GemmGpu {
    int64_t multiprocessors;

    template <class G>
    int64_t clusters(int) const {
      return multiprocessors;
    }
  };

  template <class T>
  static void multiply_tiles(const cuda::TensorProduct& product) {
    Scratch none(0);
    cuda::launch_tensor_gemm<T>(product, GemmGpu{kBlocks},
                                [&]<class G>(const G& kernel, int64_t blocks) {
                                  std::string name = entry_of<G>("run_tensor_gemm");
                                  run(
                                      name, none,
                                      [&](Launch launch) {
                                        launch.blocks = static_cast<uint32_t>(blocks);
                                        launch.cluster = static_cast<uint32_t>(kernel.cluster());
                                        start_tensor(name, kernel, launch);
                                      },
                                      [&] { cuda::emulated::Device::multiply_tiles<T>(product); });
                                });
  }

  template <cuda::Format F>
  static void multiply_fragments(const GemmArgs& args) {
    Scratch none(0);
    cuda::launch_fragment_gemm<F>(args, kBlocks, [&]<class G>(const G& kernel, int64_t blocks) {
      std::string name = entry_of<G>("run_fragment_gemm");
      run(
          name, none,
          [&](Launch launch) {
            launch.blocks = static_cast<uint32_t>(blocks);
            start_tensor(name, kernel, launch);
          },
          [&] { cuda::emulated::Device::multiply_fragments<F>(args); });
    });
  }

  static void attend_tiles(const AttentionArgs& args) {
    Scratch parts(cuda::kPartScratchBytes);
    auto* to = reinterpret_cast<float*>(parts.data());
    std::deque<cuda::TensorMap> maps;  // of keys and of values
    auto map_to = [&maps](const cuda::PoolRows& rows) { return &maps.emplace_back(map_of(rows)); };
    cuda::launch_tensor_attention(
        args, to, kBlocks, map_to, [&]<class K>(const K& kernel, const cuda::MergeParts& merge) {
          auto plan = cuda::attention_plan(args, K::kTileRows, kernel.blocks);
          parts.poison(static_cast<size_t>(plan.results * cuda::part_floats(args)) * sizeof(float));
          std::string name = entry_of<K>("run_tensor_attention");
          run(
              name, parts,
              [&](Launch launch) {
                launch.blocks = static_cast<uint32_t>(kernel.blocks);
                start_tensor(name, kernel, launch);
                launch.threads = cuda::kBlockThreads;
                launch.shared_bytes = merge.shape().shared_bytes;
                launch.blocks = kBlocks;
                launch.parameters =
                    parameter_block(merge, static_cast<std::byte*>(nullptr), size_t{0});
                start(entry_of<cuda::MergeParts>("run"), launch);
              },
              [&] { cuda::emulated::attend_tiles(args); });
        });
  }

  static constexpr int64_t kTileBytes = cuda::emulated::Device::kTileBytes;
  static std::byte* scratch(void* queue, size_t bytes) {
    return cuda::emulated::Device::scratch(queue, bytes);
  }

 private:
  template <class Kernel>
  static void start_tensor(const std::string& name, const Kernel& kernel, Launch& launch) {
    launch.threads = Kernel::kThreads;
    launch.shared_bytes = Kernel::kSharedBytes;
    launch.parameters = parameter_block(kernel);
    start(name, launch);
  }

  static void start(const std::string& name, const Launch& launch) {
    auto found = entries().all.find(name);
    if (found == entries().all.end()) fail("the module has no entry {}", name);
    ++found->second.launches;
    ptx::launch(*cuda_module(), found->second.mangled, launch);
  }

  // Calls interpret(Launch), and now and then compares what it wrote with what emulate() writes.
  template <class Interpret, class Emulate>
  static void run(const std::string& name, const Scratch& scratch, const Interpret& interpret,
                  const Emulate& emulate) {
    std::lock_guard lock(mutex());
    static std::map<std::string, uint64_t> counts;
    uint64_t count = ++counts[name];
    bool compares = count % 2 == 1;
    Journal journal;
    interpret(Launch{.seed = count, .journal = compares ? &journal : nullptr});
    if (compares) compare(name, journal, scratch, emulate);
  }
};

}  // namespace

template <class Kernel>
void launch_interpreted(const Kernel& kernel) {
  Device::launch(nullptr, kernel);
}
template void launch_interpreted(const cuda::Add&);
template void launch_interpreted(const cuda::AddRmsNorm&);
template void launch_interpreted(const cuda::CombineAddRmsNorm&);
template void launch_interpreted(const cuda::CombineExperts&);
template void launch_interpreted(const cuda::HorizontallyFused<cuda::RmsNorm, cuda::DeltaGates>&);
template void launch_interpreted(const cuda::HorizontallyFused<cuda::Rope, cuda::RoundRows>&);
template void launch_interpreted(const cuda::HorizontallyFused<cuda::SiluMul, cuda::SiluMul>&);
template void launch_interpreted(const cuda::CopyRows&);
template void launch_interpreted(const cuda::DeltaGates&);
template void launch_interpreted(const cuda::FewRowsF32&);
template void launch_interpreted(const cuda::GateMul&);
template void launch_interpreted(const cuda::ManyRowsF32&);
template void launch_interpreted(const cuda::MergeParts&);
template void launch_interpreted(const cuda::NormGateMul&);
template void launch_interpreted(const cuda::QuantiseRows&);
template void launch_interpreted(const cuda::RmsNorm&);
template void launch_interpreted(const cuda::Rope&);
template void launch_interpreted(const cuda::RoundRows&);
template void launch_interpreted(const cuda::Route&);
template void launch_interpreted(const cuda::RouteAndSort&);
template void launch_interpreted(const cuda::SiluMul&);
template void launch_interpreted(const cuda::SomeRowsF32&);
template void launch_interpreted(const cuda::SortFewExperts&);

template <class T>
void multiply_interpreted(const cuda::TensorProduct& product) {
  Device::multiply_tiles<T>(product);
}
template void multiply_interpreted<BFloat16>(const cuda::TensorProduct&);

const KernelTable& interpreted_table() {
  static const KernelTable kTable = cuda::kernel_table<Device>("interpreted cuda", kHostDevice);
  return kTable;
}

std::map<std::string, int> launches_by_entry() {
  std::lock_guard lock(mutex());
  std::map<std::string, int> launches;
  for (const auto& [name, entry] : entries().all) launches[name] = entry.launches;
  return launches;
}

}  // namespace banyan::ptx
