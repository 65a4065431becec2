// What a queue launches for a layer of a model that decodes one row: every launch by name, to the
// bits of launches that are not joined.
#include <gtest/gtest.h>

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "differential/kernels.h"
#include "engine/startup/memory_plan.h"
#include "kernels/cuda/emulated/device.h"
#include "kernels/cuda/emulated/emulated.h"
#include "kernels/cuda/launch_collector.h"
#include "kernels/cuda/table.h"
#include "models/load.h"
#include "support/drive.h"
#include "support/models/checkpoint_copy.h"
#include "support/value_or_abort.h"

namespace banyan::test::layer_launches_test {
namespace {

using Names = std::vector<std::string>;

// "RmsNorm" of banyan::cuda::RmsNorm, "PlaceHeads" of banyan::cuda::PlaceHeads<float>,
// "HorizontallyFused" of two kernels that share a launch.
std::string short_name(const char* mangled) {
  int status = 0;
  char* text = abi::__cxa_demangle(mangled, nullptr, nullptr, &status);
  std::string name = text;
  std::free(text);
  name = name.substr(0, name.find('<'));
  return name.substr(name.rfind(':') + 1);
}

// The emulation behind a queue that collects launches, as on a GPU.
struct QueuedDevice {
  struct Queue {
    cuda::LaunchCollector<QueuedDevice> collected;
    Names launched;
  };
  static Queue& queue() {
    static Queue queue;
    return queue;
  }
  static void flush() {
    queue().collected.launches().issue_all(nullptr);
    queue().collected.clear();
  }

  template <class Kernel>
  static void issue(void* /*queue*/, const void* what) {
    const auto& kernel = *static_cast<const Kernel*>(what);
    if constexpr (std::is_same_v<Kernel, cuda::AttendTiles>) {
      queue().launched.insert(queue().launched.end(), {"attention", "MergeParts"});
      cuda::emulated::Device::attend_tiles(kernel.a);
      cuda::emulated::Device::launch(
          nullptr, cuda::MergeParts{
                       .a = kernel.a, .rounded = kernel.rounded, .quantised = kernel.quantised});
    } else {
      queue().launched.push_back(short_name(typeid(Kernel).name()));
      cuda::emulated::Device::launch(nullptr, kernel);
    }
  }
  template <class Kernel>
  static void launch(void* /*queue*/, const Kernel& kernel) {
    queue().collected.add(kernel);
  }
  template <class T>
  static void multiply_tiles(const cuda::TensorProduct& product) {
    queue().collected.add_product(product, [](const cuda::TensorProduct& what) {
      queue().launched.emplace_back(what.is_gated() ? "gated" : "product");
      cuda::emulated::Device::multiply_tiles<T>(what);
    });
  }
  template <cuda::Format F>
  static void multiply_fragments(const GemmArgs& args) {
    queue().collected.add_product({args}, [](const cuda::TensorProduct& what) {
      queue().launched.emplace_back("product");
      cuda::emulated::Device::multiply_fragments<F>(what.args);
    });
  }
  static void attend_tiles(const AttentionArgs& args) {
    queue().collected.add(cuda::AttendTiles{args});
  }
  static constexpr int64_t kTileBytes = cuda::emulated::Device::kTileBytes;
  static std::byte* scratch(void* queue, size_t bytes) {
    return cuda::emulated::Device::scratch(queue, bytes);
  }
};

const KernelTable& queued_table() {
  static const DeviceOps kOps = [] {
    DeviceOps ops = kHostDevice;
    ops.upload = [](void* queue, void* to, const void* from, size_t bytes) {
      QueuedDevice::flush();
      kHostDevice.upload(queue, to, from, bytes);
    };
    return ops;
  }();
  static const KernelTable kTable = cuda::kernel_table<QueuedDevice>("queued cuda", kOps);
  return kTable;
}

// The hidden state of the first token of a model with random weights, whose prompt is so long.
std::vector<float> hidden_of_a_token(const KernelTable& kernels, const Json& config,
                                     const std::string& quantization, int32_t prompt_tokens) {
  constexpr int kPages = 2, kPageTokens = 16;
  TemporaryFolder folder;
  folder.write("config.json", config.dump());
  EngineConfig engine = {.model_path = folder.path(), .load_format = "dummy", .threads = 1};
  engine.quantization = quantization;
  ThreadPool threads(1);
  DeviceQueue queue(*kernels.device);
  LoadedModel model = value_or_abort(
      load_model(engine, {.kernels = &kernels, .queue = &queue, .threads = &threads}));
  UnitCounts units;
  units.fill(kPages);
  StatePools pools = value_or_abort(StatePools::create(model.states, kPageTokens, units, queue));
  const std::vector<TokenId> tokens = {7};
  const std::vector<int32_t> pages = {1, 0};
  Batch batch = one_span(pools.classes(), tokens, 0, 1, pages);
  batch.prompt_tokens = {prompt_tokens};
  Arena arena(measure_step_bytes(model, kernels, 64, {}), queue);  // of which one row takes little
  StepImage image(queue);
  Step step{.kernels = kernels,
            .launch = {.threads = &threads},
            .arena = arena,
            .pools = pools,
            .batch = batch,
            .inputs = image.load(batch)};
  Tensor hidden = model.model->forward(step).hidden;
  QueuedDevice::flush();
  return {hidden.f32(), hidden.f32() + hidden.count()};
}

// What is launched from `first` in a layer to the same in the next one: the last two layers that
// have it, which are to be of one kind and to follow each other.
std::string launches_of_layer(const Json& config, const std::string& first,
                              const std::string& quantization = "none", int32_t prompt_tokens = 0) {
  QueuedDevice::queue().launched.clear();
  auto hidden = [&](const KernelTable& kernels) {
    return hidden_of_a_token(kernels, config, quantization, prompt_tokens);
  };
  EXPECT_TRUE(same_bits(hidden(queued_table()), hidden(cuda::emulated::table())));
  const Names& all = QueuedDevice::queue().launched;
  auto last = std::find(all.rbegin(), all.rend(), first);
  auto before = last == all.rend() ? last : std::find(last + 1, all.rend(), first);
  if (before == all.rend()) return "none";
  return fmt::format("{}", fmt::join(before.base() - 1, last.base() - 1, " "));
}

// A golden checkpoint's configuration, in bf16 and with rows that kernels may round.
Json wide(const std::string& golden) {
  Json config = CheckpointCopy(golden).config;
  config.update({{"hidden_size", 128},
                 {"intermediate_size", 256},
                 {"head_dim", 64},
                 {"num_attention_heads", 4},
                 {"num_key_value_heads", 2},
                 {"num_hidden_layers", 4},
                 {"torch_dtype", "bfloat16"}});
  if (config.contains("moe_intermediate_size")) config["moe_intermediate_size"] = 128;
  return config;
}

// Launches of experts, and of these and an expert that all rows share.
const std::string kExperts = "GemmF32 RouteAndSort gated product ";
const std::string kExpertsAndShared = "GemmF32 RouteAndSort gated gated product product ";

TEST(LayerLaunches, OfQwen3) {
  EXPECT_EQ(launches_of_layer(wide("qwen3-bf16"), "PlaceHeads"),
            "PlaceHeads attention MergeParts product AddRmsNorm gated product "
            "AddRmsNorm product");
}

// Norms of more than 512 columns.
TEST(LayerLaunches, OfQwen3InInt4) {
  Json config = wide("qwen3-bf16");
  config["hidden_size"] = 640;
  EXPECT_EQ(launches_of_layer(config, "PlaceHeads", "int4"),
            "PlaceHeads attention MergeParts product AddRmsNorm product SiluMul product "
            "AddRmsNorm product");
}

TEST(LayerLaunches, OfQwen3WithExperts) {
  EXPECT_EQ(launches_of_layer(wide("qwen3-moe"), "PlaceHeads"),
            "PlaceHeads attention MergeParts product AddRmsNorm " + kExperts +
                "CombineAddRmsNorm product");
}

// The last layer of each group has latent attention.
Json ling3(int layers_of_group) {
  Json config = wide("ling3-tiny");
  config.erase("torch_dtype");
  config.update({{"dtype", "bfloat16"},
                 {"num_hidden_layers", 6},
                 {"layer_group_size", layers_of_group},
                 {"head_dim", 128},
                 {"num_attention_heads", 2},
                 {"num_key_value_heads", 2},
                 {"moe_shared_expert_intermediate_size", 128},
                 {"q_lora_rank", 128},
                 {"kv_lora_rank", 512},
                 {"qk_nope_head_dim", 128},
                 {"qk_rope_head_dim", 64},
                 {"v_head_dim", 128}});
  return config;
}

TEST(LayerLaunches, OfLinearAttentionInLing3) {
  EXPECT_EQ(launches_of_layer(ling3(3), "ShortConv"),
            "ShortConv HorizontallyFused DeltaAttention NormGateMul product AddRmsNorm " +
                kExpertsAndShared + "CombineAddRmsNorm product");
}

// Tensor cores prepare a prompt, and take the state through it.
TEST(LayerLaunches, OfLinearAttentionInAPromptOfLing3) {
  EXPECT_EQ(launches_of_layer(ling3(3), "ShortConv", "none", 1),
            "ShortConv HorizontallyFused PrepareStateTiles ScanStateTiles NormGateMul product "
            "AddRmsNorm " +
                kExpertsAndShared + "CombineAddRmsNorm product");
}

TEST(LayerLaunches, OfLatentAttentionInLing3) {
  EXPECT_EQ(launches_of_layer(ling3(1), "PlaceHeads"),
            "PlaceHeads HorizontallyFused product attention MergeParts RoundRows product RoundRows "
            "product GateMul product AddRmsNorm " +
                kExpertsAndShared + "CombineAddRmsNorm product RmsNorm product");
}

}  // namespace
}  // namespace banyan::test::layer_launches_test
