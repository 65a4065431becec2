// A checkpoint saved from a model without its output head (transformers' AutoModel), as those of
// embedding models are: its tensors lack the scope "model.". This source adds it, but for a head
// that is there nevertheless.
#pragma once

#include <string_view>
#include <vector>

#include "weights/files/checkpoint.h"

namespace banyan {

class BareSource final : public WeightSource {
 public:
  // `stored` must outlive this.
  explicit BareSource(const WeightSource& stored);

  // Whether `source` is such a checkpoint.
  static bool fits(const WeightSource& source);

  const TensorInfo* find(std::string_view name) const override;
  std::vector<const TensorInfo*> tensors() const override;
  Status read(const TensorInfo& tensor, size_t offset, std::span<std::byte> to) const override;
  const MappedFile* file_of(const TensorInfo& tensor) const override;

 private:
  const TensorInfo& stored(const TensorInfo& tensor) const;

  const WeightSource* source_;
  std::vector<TensorInfo> tensors_;        // sorted by name
  std::vector<const TensorInfo*> stored_;  // the same ones, as stored
};

}  // namespace banyan
