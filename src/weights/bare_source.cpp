#include "weights/bare_source.h"

#include <algorithm>
#include <string>

#include "base/check.h"
#include "base/signed.h"

namespace banyan {
namespace {

constexpr std::string_view kScope = "model.";
constexpr std::string_view kEmbedding = "embed_tokens.weight";
constexpr std::string_view kHead = "lm_head.";

std::string name_of(const TensorInfo& stored) {
  return stored.name.starts_with(kHead) ? stored.name : std::string(kScope) + stored.name;
}

}  // namespace

BareSource::BareSource(const WeightSource& stored) : source_(&stored), stored_(stored.tensors()) {
  std::ranges::sort(stored_, {}, [](const TensorInfo* tensor) { return name_of(*tensor); });
  for (const TensorInfo* tensor : stored_) {
    tensors_.push_back(*tensor);
    tensors_.back().name = name_of(*tensor);
  }
}

bool BareSource::fits(const WeightSource& source) {
  return source.find(kEmbedding) != nullptr &&
         source.find(std::string(kScope).append(kEmbedding)) == nullptr;
}

const TensorInfo* BareSource::find(std::string_view name) const {
  auto it = std::ranges::lower_bound(tensors_, name, {}, &TensorInfo::name);
  return it != tensors_.end() && it->name == name ? &*it : nullptr;
}

std::vector<const TensorInfo*> BareSource::tensors() const {
  std::vector<const TensorInfo*> all;
  for (const TensorInfo& tensor : tensors_) all.push_back(&tensor);
  return all;
}

Status BareSource::read(const TensorInfo& tensor, size_t offset, std::span<std::byte> to) const {
  return source_->read(stored(tensor), offset, to);
}

const MappedFile* BareSource::file_of(const TensorInfo& tensor) const {
  return source_->file_of(stored(tensor));
}

const TensorInfo& BareSource::stored(const TensorInfo& tensor) const {
  auto index = &tensor - tensors_.data();
  CHECK(index >= 0 && index < std::ssize(tensors_), "{} is of another source", tensor.name);
  return *at(stored_, index);
}

}  // namespace banyan
