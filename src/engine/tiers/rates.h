// The measured costs of computing and of loading: the two sides of the question whether a prefix is
// worth loading.
#pragma once

#include <array>
#include <cstdint>

#include "tier/store.h"

namespace banyan {

struct EngineInfo;

// Seconds that a prompt's positions take to compute: each (first + slope * position) operations, at
// a rate that follows the steps.
class PrefillCost {
 public:
  PrefillCost(double first, double slope, double operations_per_s)
      : first_(first), slope_(slope), seconds_per_operation_(1 / operations_per_s) {}
  // By the model's own shapes, at a rate that is a guess until a step is measured.
  explicit PrefillCost(const EngineInfo& info);

  double seconds(int64_t begin, int64_t end) const {
    return operations(begin, end) * seconds_per_operation_;
  }
  double operations(int64_t begin, int64_t end) const;
  // Records a step of this many operations, most of them for prompts.
  void observe(double operations, double seconds);

 private:
  double first_, slope_, seconds_per_operation_;
  bool measured_ = false;
};

// The time to load bytes: a latency and a rate.
class LoadCost {
 public:
  LoadCost(double latency_s, double bytes_per_s)
      : latency_s_(latency_s), bytes_per_s_(bytes_per_s) {}
  // For a local disk, until it is measured.
  LoadCost() : LoadCost(1e-3, 500e6) {}

  double seconds(int64_t bytes) const {
    return latency_s_ + static_cast<double>(bytes) / bytes_per_s_;
  }
  double bytes_per_s() const { return bytes_per_s_; }
  // Records that this many bytes arrived in this time, not counting the wait for other reads.
  void observe_read(int64_t bytes, double seconds);
  void observe_latency(double seconds);

 private:
  double latency_s_, bytes_per_s_;
  bool measured_ = false;
};

using LayerBytes = std::array<int64_t, kTierLayersMax>;

// Of a store's layers, each as fast as measured. They are asked one after the other, and read at
// the same time.
class LayerCosts {
 public:
  LayerCosts(const LoadCost& each, int layers) : layers_(layers) { costs_.fill(each); }

  double find_s() const;
  double seconds(const LayerBytes& bytes, const LayerBytes& bytes_ahead) const;
  LoadCost& of(int layer) { return costs_[static_cast<size_t>(layer)]; }

 private:
  std::array<LoadCost, kTierLayersMax> costs_;
  int layers_;
};

}  // namespace banyan
