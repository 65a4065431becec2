// The memory of LoRA adapters: a slot for each that may be loaded at once, all laid out alike,
// since one product multiplies rows of several. A slot has every matrix that the model's sites may
// have, at the largest rank, in the type of the model's weights; what an adapter lacks is zero.
//
// The engine's thread fills slots. The layout and packing are immutable and safe from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "banyan/engine.h"
#include "base/digest.h"
#include "models/load.h"
#include "ops/adapters.h"
#include "tensor/device.h"
#include "weights/files/peft_adapter.h"

namespace banyan {

class PackedAdapter {
 public:
  AdapterInfo info;
  DeviceBlock bytes;                       // of a slot, in host memory
  std::vector<std::vector<uint8_t>> used;  // [sites][parts]
};

// Fills in adapters_max and adapter_rank_max where they are 0, from the adapters' files.
Status choose_adapter_limits(EngineConfig& config);

class AdapterRoom {
 public:
  // The layout, without memory. `slots` and `rank` are above 0.
  AdapterRoom(const AdapterSites& sites, DType dtype, const KernelTable& kernels, int64_t slots,
              int64_t rank);
  AdapterRoom(const AdapterRoom&) = delete;
  AdapterRoom& operator=(const AdapterRoom&) = delete;

  int64_t bytes() const { return table_.slots * static_cast<int64_t>(slot_bytes_); }
  // Without memory before reserve(), for a pass that only measures.
  const AdapterTable& table() const { return table_; }

  void reserve(const DeviceQueue& queue);
  void put(int64_t slot, const PackedAdapter& adapter);

  Result<std::shared_ptr<const PackedAdapter>> pack(const AdapterSource& source) const;

 private:
  // Part `part` of site `site`.
  struct Place {
    size_t site = 0, part = 0;
  };
  Result<Place> place_of(const PeftModule& module, const std::string& path) const;
  void pack_rows(std::span<const float> values, PackArgs args) const;
  Status pack_a(const PeftAdapter& adapter, const PeftModule& module, Place place, Hasher& hasher,
                std::byte* slot) const;
  Status pack_b(const PeftAdapter& adapter, const PeftModule& module, Place place, double scaling,
                Hasher& hasher, std::byte* slot) const;

  const AdapterSites& sites_;
  const WeightFormat* format_;
  const GemmKernel& kernel_;
  AdapterTable table_;
  // Where a site's matrices are in a slot: A, then B of each part.
  std::vector<std::vector<size_t>> offsets_;
  size_t slot_bytes_ = 0;
  std::unordered_map<std::string, Place> places_;
  const DeviceQueue* queue_ = nullptr;
  DeviceBlock memory_;
};

}  // namespace banyan
