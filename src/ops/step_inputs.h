// The arrays of a Batch where kernels read them. Ops take shapes from the batch and pointers for
// kernels from here.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "ops/batch.h"
#include "tensor/device.h"

namespace banyan {

// Runs of rows of a step, in ascending order, on either side.
struct SpanList {
  std::span<const SpanArgs> host;
  const SpanArgs* device = nullptr;

  int64_t count() const { return std::ssize(host); }
  bool empty() const { return host.empty(); }
};

// Of one class.
struct UnitInputs {
  const int32_t* units = nullptr;
  const Capture* captures = nullptr;
};

struct StepInputs {
  const TokenId* tokens = nullptr;     // [rows]
  const int32_t* positions = nullptr;  // [rows]
  SpanList spans;
  // The same rows, cut where a sequence's prompt ends: for layers that have two forms.
  SpanList prompt, decode;
  const int32_t* prompt_tokens = nullptr;  // [spans]
  const int32_t* logit_rows = nullptr;
  const UnitCopy* copies = nullptr;
  PerClass<UnitInputs> tables;
};

// One block of device memory with all of them, sent in one piece. Arrays keep their addresses until
// one of them outgrows its room.
class StepImage {
 public:
  explicit StepImage(const DeviceQueue& queue) : queue_(queue) {}

  // Valid until the next call, and while `batch` is.
  const StepInputs& load(const Batch& batch);

 private:
  static constexpr size_t kArraysMax = 9 + 2 * kUnitClassesMax;

  void split_by_form(const Batch& batch);
  // Calls body(index, array, pointer) for every array and the pointer that is to lead to it.
  template <class Body>
  void for_arrays(const Batch& batch, const Body& body);

  const DeviceQueue& queue_;
  DeviceBlock block_;
  std::array<size_t, kArraysMax> rooms_ = {};  // bytes of each array
  std::vector<SpanArgs> prompt_, decode_;
  StepInputs inputs_;
};

}  // namespace banyan
