#include "engine/context_fill.h"

#include <cstring>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "base/signed.h"
#include "engine/runner.h"
#include "engine/schedule/scheduler.h"
#include "kernels/state_rows.h"
#include "tensor/float_types.h"

namespace banyan {
namespace {

constexpr int64_t kTemplateRows = 251;

template <class S>
void store(std::span<const float> x, const RowShape& shape, std::byte* to) {
  store_row(x.data(), shape, reinterpret_cast<S*>(to));
}

// Random rows of a state, generated once; each page uses them in a different order.
class RandomRows {
 public:
  RandomRows(const StateSpec& spec, uint64_t seed, uint64_t state)
      : bytes_(spec.row_bytes()), rows_(bytes_ * kTemplateRows) {
    RowShape shape = {.width = spec.width, .split = spec.split};
    std::vector<float> x(as_size(spec.width));
    for (int64_t r = 0; r < kTemplateRows; ++r) {
      for (size_t c = 0; c < x.size(); ++c) {
        double u = uniform(seed, state, static_cast<uint64_t>(r) * x.size() + c);
        x[c] = 2 * u - 1;
      }
      std::byte* to = rows_.data() + as_size(r) * bytes_;
      if (spec.dtype == DType::kBF16) store<BFloat16>(x, shape, to);
      if (spec.dtype == DType::kF16) store<Float16>(x, shape, to);
      if (spec.dtype == DType::kF32) store<float>(x, shape, to);
      if (spec.dtype == DType::kI8) store<int8_t>(x, shape, to);
      if (spec.dtype == DType::kF8E4M3) store<Float8E4M3>(x, shape, to);
    }
  }

  void fill(uint64_t number, std::span<std::byte> unit) const {
    for (size_t at = 0, r = 0; at + bytes_ <= unit.size(); at += bytes_, ++r) {
      size_t row = (number * 7919 + r * (number % 97 + 1)) % kTemplateRows;
      std::memcpy(unit.data() + at, rows_.data() + row * bytes_, bytes_);
    }
  }

 private:
  size_t bytes_;
  std::vector<std::byte> rows_;
};

}  // namespace

Status fill_context(Engine& engine, std::span<const TokenId> tokens, uint64_t seed) {
  auto [scheduler, runner] = EngineAssembly::parts(engine);
  RadixTree& tree = scheduler.tree();
  const StatePools& pools = runner.pools();
  const StateClasses& classes = pools.classes();
  if (runner.info().tp_size > 1) {
    return unsupported("a context of random numbers is filled in on one rank only so far");
  }
  if (classes.keeps_snapshots()) {
    return unsupported("a context of random numbers has no recurrent state; leave it out");
  }
  std::vector<RandomRows> rows;
  for (StateId id = 0; id < pools.states(); ++id) {
    rows.emplace_back(pools.spec(id), seed, static_cast<uint64_t>(id));
  }
  RadixNode* root = tree.open({});
  Status status;
  {
    Lease lease = tree.lease(root);
    auto page = as_size(classes.page_size_tokens);
    std::vector<std::byte> unit;
    for (size_t i = 0; (i + 1) * page <= tokens.size() && status.has_value(); ++i) {
      UnitSet units;
      for (int c = 0; c < classes.count; ++c) {
        if (!classes[c].paged()) continue;
        units[c] = tree.take(c);
        if (units[c] < 0) status = exhausted("no room for a context of {} tokens", tokens.size());
      }
      for (StateId id = 0; id < pools.states() && status.has_value(); ++id) {
        const StateSpec& spec = pools.spec(id);
        if (spec.unit != StateUnit::kPage) continue;
        unit.resize(spec.unit_bytes(classes.page_size_tokens));
        rows[as_size(id)].fill(i, unit);
        auto* pool = static_cast<std::byte*>(pools.pool(id));
        auto place = as_size(units[pools.class_of(id)]) * unit.size();
        runner.queue().upload(pool + place, unit.data(), unit.size());
      }
      if (status.has_value()) tree.publish(lease, tokens.subspan(i * page, page), units);
      if (!status.has_value()) tree.give_back(units);
    }
  }
  tree.close(root);
  return status;
}

}  // namespace banyan
