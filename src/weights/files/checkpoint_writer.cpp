#include "weights/files/checkpoint_writer.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/check.h"
#include "base/checked_math.h"
#include "base/error.h"
#include "base/json.h"
#include "base/signed.h"

namespace banyan {
namespace {

constexpr size_t kHeaderMultiple = 8;

Status close_file(std::FILE* file, const std::string& path) {
  bool failed = std::fflush(file) != 0 || fsync(fileno(file)) != 0;
  int error = errno;
  if (std::fclose(file) != 0 && !failed) {
    failed = true;
    error = errno;
  }
  if (!failed) return {};
  return io_error("{}: {}", path, std::strerror(error));
}

}  // namespace

int64_t OutputTensor::bytes() const {
  std::optional<int64_t> elements = checked_elements(shape);
  CHECK(elements.has_value(), "{}", name);
  return *elements * dtype_bytes(dtype);
}

CheckpointWriter::CheckpointWriter(std::string folder, std::vector<OutputTensor> tensors,
                                   int64_t shard_bytes_max)
    : folder_(std::move(folder)), tensors_(std::move(tensors)) {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    int64_t bytes = tensors_[i].bytes();
    if (shards_.empty() || (shards_.back().bytes + bytes > shard_bytes_max)) {
      shards_.push_back({.name = "", .first = i});
    }
    shards_.back().count += 1;
    shards_.back().bytes += bytes;
    bytes_total_ += bytes;
  }
  for (size_t i = 0; i < shards_.size(); ++i) {
    shards_[i].name = shards_.size() == 1
                          ? "model.safetensors"
                          : fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards_.size());
  }
}

CheckpointWriter::~CheckpointWriter() {
  if (file_ != nullptr) std::fclose(file_);
}

std::string CheckpointWriter::header_of(const Shard& shard) const {
  Json header = {{"__metadata__", {{"format", "pt"}}}};
  int64_t offset = 0;
  for (size_t i = shard.first; i < shard.first + shard.count; ++i) {
    const OutputTensor& t = tensors_[i];
    int64_t end = offset + t.bytes();
    header[t.name] = {
        {"dtype", dtype_name(t.dtype)}, {"shape", t.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + kHeaderMultiple - 1) / kHeaderMultiple * kHeaderMultiple, ' ');
  return text;
}

Status CheckpointWriter::begin_shard() {
  const Shard& shard = shards_[shard_];
  std::string path = fmt::format("{}/{}", folder_, shard.name);
  file_ = std::fopen(path.c_str(), "wbx");
  if (file_ == nullptr) return io_error("{}: {}", path, std::strerror(errno));
  std::string header = header_of(shard);
  uint64_t length = header.size();
  TRY(put(&length, sizeof(length)));
  TRY(put(header.data(), header.size()));
  shard_left_ = shard.bytes;
  return {};
}

Status CheckpointWriter::end_shard() {
  std::string path = fmt::format("{}/{}", folder_, shards_[shard_].name);
  ++shard_;
  return close_file(std::exchange(file_, nullptr), path);
}

Status CheckpointWriter::put(const void* data, size_t bytes) {
  if (std::fwrite(data, 1, bytes, file_) == bytes) return {};
  return io_error("{}/{}: {}", folder_, shards_[shard_].name, std::strerror(errno));
}

Status CheckpointWriter::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    if (file_ == nullptr) {
      CHECK(shard_ < shards_.size(), "{} bytes too many", bytes.size());
      TRY(begin_shard());
    }
    auto count = as_size(std::min<int64_t>(shard_left_, std::ssize(bytes)));
    TRY(put(bytes.data(), count));
    bytes = bytes.subspan(count);
    shard_left_ -= count;
    if (shard_left_ == 0) TRY(end_shard());
  }
  return {};
}

Status CheckpointWriter::finish() {
  CHECK(file_ == nullptr && shard_ == shards_.size(), "shard {} wants {} bytes", shard_,
        shard_left_);
  return shards_.size() > 1 ? write_index() : Status();
}

Status CheckpointWriter::write_index() const {
  Json map = Json::object();
  for (const Shard& shard : shards_) {
    for (size_t i = shard.first; i < shard.first + shard.count; ++i) {
      map[tensors_[i].name] = shard.name;
    }
  }
  Json index = {{"metadata", {{"total_size", bytes_total_}}}, {"weight_map", std::move(map)}};
  return write_file(folder_ + "/model.safetensors.index.json", index.dump(2) + "\n");
}

Status write_file(const std::string& path, std::string_view text) {
  std::FILE* file = std::fopen(path.c_str(), "wbx");
  if (file == nullptr) return io_error("{}: {}", path, std::strerror(errno));
  bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  int error = errno;
  Status closed = close_file(file, path);
  if (!written) return io_error("{}: {}", path, std::strerror(error));
  return closed;
}

}  // namespace banyan
