// The arrays of a Batch in memory that kernels can read. Ops take shapes from the batch and kernel
// pointers from here.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "ops/batch.h"
#include "tensor/device.h"

namespace banyan {

// Ascending runs of a step's rows, in host and device memory. In a step that is launched before the
// one before it is read, the host knows only where they end at the latest; if it can access device
// memory, both are the same.
struct SpanList {
  std::span<const SpanArgs> host;
  const SpanArgs* device = nullptr;

  int64_t count() const { return std::ssize(host); }
  int64_t rows() const {
    int64_t rows = 0;
    for (const SpanArgs& span : host) rows += span.row_count;
    return rows;
  }
  bool empty() const { return host.empty(); }
};

// The inputs of one class.
struct UnitInputs {
  const int32_t* units = nullptr;
  const Capture* captures = nullptr;
};

// The rows of spans with an adapter, sorted by its slot.
struct AdaptedRows {
  const int32_t* rows = nullptr;    // [count]
  const int32_t* begins = nullptr;  // [slots + 1] the first row of each slot
  int64_t count = 0;
  int64_t slots = 0;  // up to the last one in use

  bool empty() const { return count == 0; }
};

struct StepInputs {
  const TokenId* tokens = nullptr;     // [rows]
  const int32_t* positions = nullptr;  // [rows]
  SpanList spans;
  SpanList stored;  // those, and the shared rows: where rows are written to pages
  // The same rows, split at the end of each sequence's prompt, for layers with two forms.
  SpanList prompt, decode;
  AdaptedRows adapted;
  const int32_t* prompt_tokens = nullptr;  // [spans]
  const DraftRows* drafts = nullptr;       // [spans], where the batch has them
  const int32_t* logit_rows = nullptr;
  const int32_t* hidden_rows = nullptr;
  const UnitCopy* copies = nullptr;
  PerClass<UnitInputs> tables;
};

// One block of device memory with all arrays, uploaded in one copy. Arrays keep their addresses
// until one outgrows its room.
class StepImage {
 public:
  explicit StepImage(const DeviceQueue& queue) : queue_(queue) {}

  // Valid until the next call, and while `batch` lives.
  const StepInputs& load(const Batch& batch);
  const StepInputs& inputs() const { return inputs_; }
  // Where a kernel writes what was not known when `batch` was loaded.
  FollowDraftsArgs unknown(const Batch& batch) const;

 private:
  static constexpr size_t kArraysMax = 13 + 2 * kUnitClassesMax;

  void split_by_form(const Batch& batch);
  void add_shared(const Batch& batch);
  void sort_by_adapter(const Batch& batch);
  void set_spans(SpanList& list, const std::vector<SpanArgs>& spans) const;
  // Calls body(index, array, pointer) for every array and the pointer to set to it.
  template <class Body>
  void for_arrays(const Batch& batch, const Body& body);

  const DeviceQueue& queue_;
  DeviceBlock block_;
  std::array<size_t, kArraysMax> rooms_ = {};  // capacity in bytes of each array
  std::vector<SpanArgs> prompt_, decode_;
  std::vector<SpanArgs> stored_;  // empty: the batch's spans
  std::vector<int32_t> adapted_rows_, adapter_begins_;
  StepInputs inputs_;
};

}  // namespace banyan
