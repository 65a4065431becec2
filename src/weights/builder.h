// Declares a model's weights and states, scope by scope. The constructors of layers are the weight
// map: each names its tensors once, next to the member that they fill.
//
//   GatedMlp(Builder b, ...) : gate_up_(b.matrix({{"gate_proj", n}, {"up_proj", n}}, columns)), ...
//
// Declaring reads, converts and packs the tensor at once. Nothing is returned early on a problem:
// the declaration yields an empty weight, the problem is noted, and WeightLoader::finish() reports
// them all together: what is missing, what nobody asked for, and what has another shape or dtype.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "banyan/config.h"
#include "banyan/model_info.h"
#include "banyan/status.h"
#include "base/thread_pool.h"
#include "cache/state_spec.h"
#include "dist/shard.h"
#include "quant/formats.h"
#include "tensor/device.h"
#include "tensor/tensor.h"
#include "weights/files/checkpoint.h"
#include "weights/matrix_packer.h"
#include "weights/quant_config.h"
#include "weights/quantization_plan.h"
#include "weights/rank_part.h"
#include "weights/stacked_source.h"
#include "weights/stored_matrix.h"

namespace banyan {

// Owns the bytes of a loaded model's weights.
//
// Weights lie side by side in large blocks, which huge pages can hold: experts are many and smaller
// than one, and a step reads another part of them each time.
class WeightStore {
 public:
  // Of the device of `queue`, which must outlive the store.
  explicit WeightStore(const DeviceQueue& queue = host_queue()) : queue_(&queue) {}

  // From a cache line's beginning; zeros.
  std::byte* allocate(size_t bytes);

 private:
  const DeviceQueue* queue_;
  std::vector<DeviceBlock> blocks_;
  size_t reserved_ = 0;  // by all blocks
  size_t used_ = 0;      // of the last one
};

// What was loaded, in numbers.
// The part of the tokens that pass through a weight: on average, and the least and most that one
// token may have to do with. Of the experts of a layer it is those that the router chooses.
struct TokenShare {
  double mean = 1, min = 1, max = 1;
};

// One matrix of a model: what the checkpoint has of it, and what it is in memory.
struct MatrixRecord {
  struct Part {
    std::string name;  // "model.layers.0.self_attn.q_proj"
    int64_t rows = 0;
    int64_t first_row = 0;     // of the stored matrix, where a rank takes a part of it
    std::string stored;        // "bf16", "fp8, blocks of 128 x 128"
    bool keeps_codes = false;  // its codes are taken as they are
    bool weight_only = false;  // was asked for
    bool integers = false;     // are stored: codes that are neither floating point nor fp8
  };
  std::vector<Part> parts;   // stacked
  PackedMatrix matrix;       // without data in a dry load
  int64_t column_begin = 0;  // of the stored columns, where a rank takes a part of them
  double share = 1;          // of the tokens that pass through it; 0: only looked up

  MatrixForm form() const { return {matrix.format, matrix.group}; }
};

struct LoadOptions {
  const WeightSource* source = nullptr;  // null: seeded random weights of the declared shapes
  const KernelTable* kernels = nullptr;
  const DeviceQueue* queue = &host_queue();  // of the kernels' device, unless the load is dry
  ThreadPool* threads = nullptr;
  const WeightFormat* format = nullptr;    // of every matrix; null: as each is stored
  DType dtype = DType::kBF16;              // of random weights, and of derived ones
  std::optional<DType> page_dtype;         // of states in pages; absent: `dtype`
  QuantConfig quant;                       // how the source's matrices are quantised
  const QuantizationPlan* plan = nullptr;  // what is asked for in addition to `format`, or null
  bool expanded_prefill = false;           // of latent attention
  bool prediction = false;                 // with the layer that predicts a further token
  Rank rank;                               // whose part of the weights is read
  bool dry = false;                        // check and count, but read and reserve nothing
  LoadProgress progress;
};

// A layer that chooses among experts, and where its counts lie among those of all layers.
struct ExpertLayer {
  std::string name;  // "model.layers.3.mlp"
  int64_t experts = 0, identity_experts = 0, top_k = 0;
  int64_t counts_begin = 0;  // of experts + identity_experts
};

// One load in progress: what Builders share.
class WeightLoader {
 public:
  explicit WeightLoader(LoadOptions options);
  WeightLoader(const WeightLoader&) = delete;
  WeightLoader& operator=(const WeightLoader&) = delete;

  // The errors so far, or OK. Unused tensors are an error too.
  Status finish();

  WeightStore take_store() { return std::move(store_); }
  std::vector<StateSpec> take_states() { return std::move(states_); }
  std::vector<MatrixRecord> take_matrices() { return std::move(matrices_); }
  std::vector<ExpertLayer> take_expert_layers() { return std::move(expert_layers_); }
  const WeightCounts& counts() const { return counts_; }

 private:
  friend class Builder;

  // The checkpoint's tensor of that name and shape, or null with the problem noted. With `loosely`,
  // dimensions of 1 may be there or not.
  const TensorInfo* claim(const std::string& name, std::initializer_list<int64_t> shape,
                          bool loosely = false);
  void count_parameters(int64_t count, const TokenShare& share);
  // Claims a tensor as Builder::values() wants it and counts its parameters, of which a token reads
  // `share`; false with the problem noted.
  bool claim_values(const std::string& name, std::initializer_list<int64_t> shape,
                    const TokenShare& share, const TensorInfo*& tensor);
  // Counts and reserves values that every token reads whole; null in a dry load.
  float* allocate_values(int64_t count, const TokenShare& share);
  // Reads all elements of a tensor, or makes random ones where it is null, as f32.
  void fill(const TensorInfo* tensor, const std::string& name, int64_t count, float random_center,
            float* to);
  // The checkpoint's matrix of that name and shape, if it has one; else the problem is noted.
  std::optional<StoredMatrix> claim_matrix(const std::string& name, int64_t rows, int64_t columns);
  bool is_zero_bias(const TensorInfo& tensor) const;
  // The rows that this rank takes of `rows`, or none with the problem noted.
  std::vector<RowRange> rows_of(std::string_view name, int64_t rows, const Shard& shard);
  // fill() of a vector of `rows`, of which only those in `ranges` are taken.
  void fill_rows(const TensorInfo* tensor, const std::string& name, int64_t rows,
                 std::span<const RowRange> ranges, float random_center, float* to);
  // Gives `matrix` its memory.
  void allocate(PackedMatrix& matrix);
  // Packs matrix `index` of `matrix`, which has its memory unless the load is dry, and counts it.
  void pack(RankPart& part, const PackedMatrix& matrix, int64_t index, MatrixUse use,
            const TokenShare& share);
  void record(const RankPart& part, const PackedMatrix& matrix, double share);
  void report_progress(int64_t bytes);
  // Counts a weight that `share` of the tokens pass through.
  void count_active(int64_t parameters, int64_t bytes, const TokenShare& share);

  LoadOptions options_;
  std::optional<StackedSource> stacked_;  // what options_.source is, if there is one
  WeightStore store_;
  std::vector<StateSpec> states_;
  std::vector<MatrixRecord> matrices_;
  std::vector<ExpertLayer> expert_layers_;
  WeightCounts counts_;
  std::unordered_set<std::string> used_;
  std::vector<std::string> problems_;
  int64_t bytes_done_ = 0;
  int64_t bytes_total_ = 0;
};

// Part of a fused matrix: the rows of `<name>.weight`, and how ranks divide them.
struct MatrixPart {
  std::string_view name;
  int64_t rows;
  Shard shard = {};
  bool has_vector = true;  // false: it has no bias where the others have one
};

// A scope of names. Cheap to copy; valid while its WeightLoader lives.
class Builder {
 public:
  explicit Builder(WeightLoader& loader) : loader_(&loader) {}

  // The scope below: b / "self_attn", b / 3.
  Builder operator/(std::string_view name) const;
  Builder operator/(int64_t index) const;

  // Packs `<scope>.<part>.weight` [rows, columns], or what stands for it in a quantised checkpoint,
  // of each part one under the other. All sizes are those of the checkpoint: what this rank has of
  // them follows from the shards.
  PackedMatrix matrix(std::initializer_list<MatrixPart> parts, int64_t columns,
                      MatrixUse use = MatrixUse::kMultiply) const;

  // The matrices of the scopes below, `<scope>.0` to `<scope>.<count - 1>`, which one product goes
  // over: packed alike, one after the other. Stored in different forms, they fail the load. Ranks
  // divide them, whole ones: those of part(count) are packed.
  PackedMatrix matrices(int64_t count, std::initializer_list<MatrixPart> parts,
                        int64_t columns) const;

  // `<scope>.<part>.<leaf>` [size] of each part one after the other, as f32, cut as the rows of a
  // matrix with those shards. Random weights vary around `random_center`: 1 for norms, 0 for
  // biases. Zeros for a part that has none. `offset` is added to what is stored.
  Tensor vector(std::initializer_list<MatrixPart> parts, std::string_view leaf, float random_center,
                float offset = 0) const;

  // `<scope>.<name>` of `shape` as dense f32. Dimensions of 1 count for nothing: [channels, 1,
  // taps] is [channels, taps]. Only vectors can be cut.
  Tensor values(std::string_view name, std::initializer_list<int64_t> shape, float random_center,
                const Shard& shard = {}) const;
  // The same in host memory, to derive constants from; of a matrix the rows of its first dimension
  // can be cut. Nothing on a problem, and when nothing is read.
  std::vector<float> host_values(std::string_view name, std::initializer_list<int64_t> shape,
                                 float random_center, const Shard& shard = {}) const;
  // The same of the scopes below, `<scope>.0` to `<scope>.<count - 1>`, those of part(count)
  // -> [experts of this rank, sizes of the parts].
  Tensor vectors(int64_t count, std::initializer_list<MatrixPart> parts, std::string_view leaf,
                 float random_center) const;

  // Lets the parts of `<scope>.<name>`, one tensor of so many matrices or vectors, be read as
  // tensors of the scopes below. Does nothing where there is no such tensor.
  void split(std::string_view name, const StackShape& shape,
             std::initializer_list<StackPart> parts) const;

  // What no checkpoint stores: numbers that follow from the config, or from host_values(); none
  // where there were none of those. `values` fill `shape` and are copied.
  Tensor constant(std::initializer_list<int64_t> shape, std::span<const float> values) const;

  StateId state(StateSpec spec) const;
  // Declares that this scope chooses `top_k` of so many experts; gives its counts_begin.
  int64_t expert_layer(int64_t experts, int64_t identity_experts, int64_t top_k) const;
  // Which of the ranks that run this model is loaded, and those of `units` that it has.
  Rank rank() const;
  UnitRange part(int64_t units) const;
  // The element type of derived weights, and that which states in pages are kept in.
  DType dtype() const;
  DType page_dtype() const;
  // Whether latent attention expands the positions of prompts.
  bool expanded_prefill() const;
  // Whether the layer that predicts a further token (MTP) is to be loaded.
  bool prediction() const;

  // The same scope, for weights that only a share of the tokens passes through.
  Builder with_share(const TokenShare& share) const;

  // `<scope>.<name>.weight` [rows, columns], quantised or not, as f32, to derive weights from.
  // Nothing on a problem, and when nothing is read.
  std::vector<float> floats(std::string_view name, int64_t rows, int64_t columns) const;
  // `count` matrices [rows, columns] of `format`, packed from elements that floats() gave in any
  // order; no elements where there were none.
  PackedMatrix derived(std::string_view format, int64_t count, int64_t rows, int64_t columns,
                       std::span<const float> elements) const;

  // Whether the checkpoint has `<scope>.<name>`, quantised or not; false for random weights.
  bool has(std::string_view name) const;
  // Fails the load; `problem` follows the scope's name.
  void reject(std::string_view problem) const;
  // Lets `<scope>.<name>` be there without anybody using it.
  void ignore(std::string_view name) const;
  // The same for every tensor of this scope.
  void ignore_scope() const;

 private:
  Builder(WeightLoader* loader, std::string scope, const TokenShare& share)
      : loader_(loader), scope_(std::move(scope)), share_(share) {}
  std::string full_name(std::string_view name) const;
  // What `parts` stacked are in the checkpoint; none with the problem noted.
  std::vector<MatrixSource> sources_of(std::initializer_list<MatrixPart> parts, int64_t columns,
                                       MatrixUse use) const;
  // What this rank takes of them, and in which form; none with the problem noted.
  std::optional<RankPart> part_of(std::span<const MatrixSource> sources, int64_t columns) const;
  // A matrix for that, without its memory.
  PackedMatrix shape_of(const RankPart& part) const;

  WeightLoader* loader_;
  std::string scope_;
  TokenShare share_;
};

}  // namespace banyan
