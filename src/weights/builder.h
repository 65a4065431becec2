// Declares a model's weights and states, scope by scope. Layer constructors are the weight map:
// each names its tensors once, next to the member that holds them.
//
//   GatedMlp(Builder b, ...) : gate_up_(b.stacked({{"gate_proj", n}, {"up_proj", n}}, columns))
//
// A declaration reads, converts and packs the tensor immediately. On a problem it yields an empty
// weight and records the problem. WeightLoader::finish() reports all problems together: missing
// tensors, unused tensors, and wrong shapes or dtypes.
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
#include "base/threads/thread_pool.h"
#include "cache/state_spec.h"
#include "dist/shard.h"
#include "quant/formats.h"
#include "tensor/device.h"
#include "tensor/tensor.h"
#include "weights/adapter_site.h"
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
// Weights are placed contiguously in large blocks that fit huge pages: experts are numerous and
// smaller than a huge page, and each step reads different ones.
class WeightStore {
 public:
  // Allocates on the device of `queue`, which must outlive the store.
  explicit WeightStore(const DeviceQueue& queue = host_queue()) : queue_(&queue) {}

  // Zeroed and aligned to a cache line.
  std::byte* allocate(size_t bytes);

 private:
  const DeviceQueue* queue_;
  std::vector<DeviceBlock> blocks_;
  size_t reserved_ = 0;  // total over all blocks
  size_t used_ = 0;      // used bytes of the last block
};

// The share of tokens that pass through a weight: on average, and the minimum and maximum that one
// token may use. For a layer's experts it follows from the router's top k.
struct TokenShare {
  double mean = 1, min = 1, max = 1;
};

// One matrix of a model: its tensors in the checkpoint, and its form in memory.
struct MatrixRecord {
  struct Part {
    std::string name;  // "model.layers.0.self_attn.q_proj"
    int64_t rows = 0;
    int64_t first_row = 0;     // row of the stored matrix where this rank's part begins
    std::string stored;        // "bf16", "fp8, blocks of 128 x 128"
    bool keeps_codes = false;  // its codes are used unchanged
    bool weight_only = false;  // weight-only was requested
    bool integers = false;     // stored as integer codes, not floating point or fp8
  };
  std::vector<Part> parts;   // parts stacked in the matrix
  PackedMatrix matrix;       // without data in a dry load
  int64_t column_begin = 0;  // stored column where this rank's part begins
  double share = 1;          // share of tokens that pass through it; 0: lookup only

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
  std::optional<DType> index_dtype;        // of the keys of an index; absent: see Builder
  QuantConfig quant;                       // how the source's matrices are quantised
  const QuantizationPlan* plan = nullptr;  // requested in addition to `format`, or null
  bool expanded_prefill = false;           // for latent attention
  bool prediction = false;                 // load the multi-token prediction layer
  int64_t draft_vocabulary = 0;            // how many tokens it drafts; 0: all
  // Of attention to blocks, in place of what the model says; 0: the model's own.
  int64_t moba_block_tokens = 0, moba_top_k = 0;
  std::optional<bool> moba_decode;  // likewise, for generated tokens
  // The checkpoint has no output head. The embedding takes its place, and no logits may be used.
  bool headless = false;
  Rank rank;         // the rank whose part of the weights is read
  bool dry = false;  // only check and count; read and reserve nothing
  LoadProgress progress;
};

// A layer with routed experts, and the position of its counts among those of all layers.
struct ExpertLayer {
  std::string name;  // "model.layers.3.mlp"
  int64_t experts = 0, identity_experts = 0, top_k = 0;
  int64_t counts_begin = 0;  // of experts + identity_experts
};

// One load in progress: the state shared by Builders.
class WeightLoader {
 public:
  explicit WeightLoader(LoadOptions options);
  WeightLoader(const WeightLoader&) = delete;
  WeightLoader& operator=(const WeightLoader&) = delete;

  // The errors so far, or OK. Unused tensors are also an error.
  Status finish();

  WeightStore take_store() { return std::move(store_); }
  std::vector<StateSpec> take_states() { return std::move(states_); }
  std::vector<MatrixRecord> take_matrices() { return std::move(matrices_); }
  std::vector<ExpertLayer> take_expert_layers() { return std::move(expert_layers_); }
  // Without the names of `others` that are also those of sites.
  AdapterSites take_adapter_sites();
  const WeightCounts& counts() const { return counts_; }

 private:
  friend class Builder;

  // The checkpoint's tensor of that name and shape; null after recording a problem. With `loosely`,
  // dimensions of 1 are ignored.
  const TensorInfo* claim(const std::string& name, std::initializer_list<int64_t> shape,
                          bool loosely = false);
  void count_parameters(int64_t count, const TokenShare& share);
  // Claims a tensor for Builder::values() and counts its parameters, of which a token reads
  // `share`. Returns false after recording a problem.
  bool claim_values(const std::string& name, std::initializer_list<int64_t> shape,
                    const TokenShare& share, const TensorInfo*& tensor);
  // Counts and reserves values that every token reads entirely; null in a dry load.
  float* allocate_values(int64_t count, const TokenShare& share);
  // Reads all elements of a tensor as f32, or generates random ones if it is null.
  void fill(const TensorInfo* tensor, const std::string& name, int64_t count, float random_center,
            float* to);
  // The checkpoint's matrix of that name and shape; otherwise records a problem.
  std::optional<StoredMatrix> claim_matrix(const std::string& name, int64_t rows, int64_t columns);
  bool is_zero_bias(const TensorInfo& tensor) const;
  // This rank's part of `rows`; empty after recording a problem.
  std::vector<RowRange> rows_of(std::string_view name, int64_t rows, const Shard& shard);
  // Like fill(), for a vector of `rows` of which only `ranges` are taken.
  void fill_rows(const TensorInfo* tensor, const std::string& name, int64_t rows,
                 std::span<const RowRange> ranges, float random_center, float* to);
  // Allocates memory for `matrix`.
  void allocate(PackedMatrix& matrix);
  // Packs matrix `index` of `matrix`, which must be allocated unless the load is dry, and counts
  // it.
  void pack(RankPart& part, const PackedMatrix& matrix, int64_t index, MatrixUse use,
            const TokenShare& share);
  // Packs one matrix, which must be allocated unless the load is dry.
  void write(RankPart& part, const PackedMatrix& matrix);
  // Reads what is needed of stored matrices before they are packed; false after a problem.
  bool load_stored(RankPart& part);
  // Packs and sends the part of it that is `piece`, from row `row_begin` on; false after a problem.
  bool write_rows(const RankPart& part, int64_t row_begin, PackedMatrix piece);
  // How many rows of `matrix` are packed before they are sent.
  int64_t rows_of_piece(const PackedMatrix& matrix) const;
  void record(const RankPart& part, const PackedMatrix& matrix, double share);
  void report_progress(int64_t bytes);
  // Counts a weight that `share` of the tokens pass through.
  void count_active(int64_t parameters, int64_t bytes, const TokenShare& share);

  LoadOptions options_;
  std::optional<StackedSource> stacked_;  // wraps options_.source, if there is one
  WeightStore store_;
  DoubleStaging staging_;
  std::vector<StateSpec> states_;
  std::vector<MatrixRecord> matrices_;
  std::vector<ExpertLayer> expert_layers_;
  AdapterSites adapter_sites_;
  WeightCounts counts_;
  std::unordered_set<std::string> used_;
  std::vector<std::string> problems_;
  std::vector<std::string> undivided_;  // what has fewer parts than there are ranks
  int64_t bytes_done_ = 0;
  int64_t bytes_total_ = 0;
};

// Part of a fused matrix: the rows of `<name>.weight`, and how they are sharded.
struct MatrixPart {
  std::string_view name;
  int64_t rows;
  Shard shard = {};
  bool has_vector = true;  // false: this part has no bias though others have one
};

// A name scope. Cheap to copy; valid while its WeightLoader lives.
class Builder {
 public:
  explicit Builder(WeightLoader& loader) : loader_(&loader) {}

  // A nested scope: b / "self_attn", b / 3.
  Builder operator/(std::string_view name) const;
  Builder operator/(int64_t index) const;

  // Packs `<scope>.<part>.weight` [rows, columns], or its quantised equivalent. All sizes are those
  // of the checkpoint; this rank's sizes follow from the shards.
  PackedMatrix matrix(const MatrixPart& part, int64_t columns,
                      MatrixUse use = MatrixUse::kMultiply) const;
  // Another copy of the first `rows` rows of a matrix that is loaded whole. It counts as memory,
  // not as parameters. Without other ranks only.
  PackedMatrix first_rows(const MatrixPart& whole, int64_t rows, int64_t columns) const;
  // All parts stacked vertically: one matrix, or consecutive ones if no format in memory holds the
  // stored ones together (split_by_form).
  std::vector<PackedMatrix> stacked(std::initializer_list<MatrixPart> parts, int64_t columns) const;

  // The matrices of the nested scopes `<scope>.0` to `<scope>.<count - 1>`, multiplied by one
  // grouped gemm: packed alike, in sequence. The load fails if they are stored in different forms.
  // Ranks take whole matrices: those of part(count) are packed.
  PackedMatrix matrices(int64_t count, std::initializer_list<MatrixPart> parts,
                        int64_t columns) const;

  // `<scope>.<part>.<leaf>` [size] of all parts concatenated as f32, sharded like the rows of a
  // matrix. Zeros for a part that has none. Random weights vary around `random_center`: 1 for
  // norms, 0 for biases. `offset` is added to stored values.
  Tensor vector(std::initializer_list<MatrixPart> parts, std::string_view leaf, float random_center,
                float offset = 0) const;

  // `<scope>.<name>` of `shape` as dense f32. Dimensions of 1 are ignored: [channels, 1, taps]
  // equals [channels, taps]. Only vectors can be sharded.
  Tensor values(std::string_view name, std::initializer_list<int64_t> shape, float random_center,
                const Shard& shard = {}) const;
  // Like values(), but in host memory, to derive constants from. A matrix can be sharded by its
  // first dimension. Empty after a problem, or if nothing is read.
  std::vector<float> host_values(std::string_view name, std::initializer_list<int64_t> shape,
                                 float random_center, const Shard& shard = {}) const;
  // Like vector(), for the nested scopes `<scope>.0` to `<scope>.<count - 1>`, those of part(count)
  // -> [experts of this rank, sizes of the parts].
  Tensor vectors(int64_t count, std::initializer_list<MatrixPart> parts, std::string_view leaf,
                 float random_center) const;

  // Makes the parts of `<scope>.<name>`, one tensor that stacks several matrices or vectors,
  // readable as tensors of nested scopes. Does nothing if there is no such tensor.
  void split(std::string_view name, const StackShape& shape,
             std::initializer_list<StackPart> parts) const;

  // A constant that no checkpoint stores, computed from the config or from host_values(). Empty if
  // `values` is. `values` fill `shape` and are copied.
  Tensor constant(std::initializer_list<int64_t> shape, std::span<const float> values) const;

  StateId state(StateSpec spec) const;
  // Declares that this scope routes to `top_k` of the experts; returns its counts_begin.
  int64_t expert_layer(int64_t experts, int64_t identity_experts, int64_t top_k) const;
  // The rank being loaded, and its part of `units`.
  Rank rank() const;
  UnitRange part(int64_t units) const;
  // The element type of derived weights, and that of states in pages.
  DType dtype() const;
  DType page_dtype() const;
  // The element type of an index's keys: as states in pages if these are not quantised, else as
  // derived weights.
  DType index_dtype() const;
  // Whether latent attention expands the positions of prompts.
  bool expanded_prefill() const;
  // Whether to load the multi-token prediction (MTP) layer.
  bool prediction() const;
  // LoadOptions::draft_vocabulary.
  int64_t draft_vocabulary() const;
  // LoadOptions::headless.
  bool headless() const;
  // LoadOptions::moba_block_tokens, moba_top_k and moba_decode.
  int64_t moba_block_tokens() const;
  int64_t moba_top_k() const;
  std::optional<bool> moba_decode() const;

  // Declares that adapters may add to the product of these parts, and numbers it. -1: they may not.
  int adapter_site(std::initializer_list<MatrixPart> parts, int64_t columns) const;
  // The same scope, in which adapters add to nothing.
  Builder without_adapters() const;

  // The same scope, for weights that only a share of the tokens pass through.
  Builder with_share(const TokenShare& share) const;

  // `<scope>.<name>.weight` [rows, columns], quantised or not, as f32, to derive weights from.
  // Empty after a problem, or if nothing is read.
  std::vector<float> floats(std::string_view name, int64_t rows, int64_t columns) const;
  // `count` matrices [rows, columns] of `format`, packed from elements that floats() returned, in
  // any order. Elements are empty if floats() returned none.
  PackedMatrix derived(std::string_view format, int64_t count, int64_t rows, int64_t columns,
                       std::span<const float> elements) const;

  // Whether the checkpoint has `<scope>.<name>`, quantised or not; false for random weights.
  bool has(std::string_view name) const;
  // Fails the load; the error is the scope's name followed by `problem`.
  void reject(std::string_view problem) const;
  // Accepts `<scope>.<name>` as unused.
  void ignore(std::string_view name) const;
  // Accepts every tensor of this scope as unused.
  void ignore_scope() const;

 private:
  Builder(WeightLoader* loader, std::string scope, const TokenShare& share, bool adaptable)
      : loader_(loader), scope_(std::move(scope)), share_(share), adaptable_(adaptable) {}
  std::string full_name(std::string_view name) const;
  // A part's source, before its matrix is looked up.
  MatrixSource source_of(const MatrixPart& part, MatrixUse use) const;
  // The checkpoint's matrices for the stacked `parts`; empty after recording a problem.
  std::vector<MatrixSource> sources_of(std::initializer_list<MatrixPart> parts, int64_t columns,
                                       MatrixUse use) const;
  // This rank's part of them, and its form; empty after recording a problem.
  std::optional<RankPart> part_of(std::span<const MatrixSource> sources, int64_t columns) const;
  // The matrix for that part, without memory.
  PackedMatrix shape_of(const RankPart& part) const;

  WeightLoader* loader_;
  std::string scope_;
  TokenShare share_;
  bool adaptable_ = true;
};

}  // namespace banyan
