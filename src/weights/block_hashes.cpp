#include "weights/block_hashes.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "base/check.h"
#include "base/error.h"
#include "base/signed.h"
#include "weights/hash_cache.h"

namespace banyan {
namespace {

// Blocks that each worker hashes between two progress reports.
constexpr size_t kBlocksPerRound = 16;

Result<Digest> hash_block(const WeightSource& source, const WeightBlock& block, Hasher& hasher,
                          std::vector<std::byte>& buffer) {
  buffer.resize(block.bytes);
  TRY(source.read(*block.tensor, block.offset, buffer));
  return hasher.bytes(buffer).finish();
}

// One round: every worker hashes its share of `blocks`.
Status hash_round(const WeightSource& source, std::span<const WeightBlock> blocks,
                  ThreadPool& threads, std::span<Digest> hashes) {
  std::mutex mutex;
  Status status;
  threads.parallel_for(std::ssize(blocks), 1, [&](int64_t begin, int64_t end) {
    Hasher hasher;
    std::vector<std::byte> buffer;
    for (size_t i = begin, last = end; i < last; ++i) {
      Result<Digest> hash = hash_block(source, blocks[i], hasher, buffer);
      if (hash) {
        hashes[i] = *hash;
        continue;
      }
      std::lock_guard lock(mutex);
      status = std::unexpected(hash.error());
      return;
    }
  });
  return status;
}

// The blocks of a checkpoint in one file, with their indices in the whole list.
struct FileBlocks {
  const MappedFile* file = nullptr;  // null: the source has no file
  std::vector<WeightBlock> blocks;
  std::vector<size_t> numbers;
};

std::vector<FileBlocks> by_file(const WeightSource& source, std::span<const WeightBlock> blocks) {
  std::map<std::string, FileBlocks> files;
  for (size_t i = 0; i < blocks.size(); ++i) {
    const MappedFile* file = source.file_of(*blocks[i].tensor);
    FileBlocks& of_file = files[file == nullptr ? "" : file->path()];
    of_file.file = file;
    of_file.blocks.push_back(blocks[i]);
    of_file.numbers.push_back(i);
  }
  std::vector<FileBlocks> list;
  for (auto& [path, of_file] : files) list.push_back(std::move(of_file));
  return list;
}

Result<std::vector<Digest>> hash_file(const WeightSource& source, const FileBlocks& of_file,
                                      const HashCache& cache, ThreadPool& threads,
                                      const LoadProgress& progress) {
  std::vector<Digest> hashes(of_file.blocks.size());
  if (of_file.file == nullptr) {
    TRY(hash_blocks(source, of_file.blocks, threads, progress, hashes));
    return hashes;
  }
  FileIdentity before = TRY(of_file.file->identity());
  const std::string& path = of_file.file->path();
  if (cache.find(path, before, hashes)) return hashes;
  TRY(hash_blocks(source, of_file.blocks, threads, progress, hashes));
  if (before == TRY(of_file.file->identity())) cache.keep(path, before, hashes);
  return hashes;
}

}  // namespace

std::vector<WeightBlock> weight_blocks(const WeightSource& source) {
  std::vector<WeightBlock> blocks;
  for (const TensorInfo* tensor : source.tensors()) {
    for (size_t offset = 0; offset < tensor->bytes.size(); offset += kHashBlockBytes) {
      blocks.push_back({tensor, offset, std::min(kHashBlockBytes, tensor->bytes.size() - offset)});
    }
  }
  return blocks;
}

Status hash_blocks(const WeightSource& source, std::span<const WeightBlock> blocks,
                   ThreadPool& threads, const LoadProgress& progress, std::span<Digest> hashes) {
  CHECK(blocks.size() == hashes.size(), "{} hashes of {} blocks", hashes.size(), blocks.size());
  int64_t total = 0, done = 0;
  for (const WeightBlock& block : blocks) total += block.bytes;
  size_t round = kBlocksPerRound * as_size(threads.size());
  for (size_t begin = 0; begin < blocks.size(); begin += round) {
    size_t count = std::min(round, blocks.size() - begin);
    std::span<const WeightBlock> some = blocks.subspan(begin, count);
    TRY(hash_round(source, some, threads, hashes.subspan(begin, count)));
    for (const WeightBlock& block : some) done += block.bytes;
    if (progress) progress(done, total);
  }
  return {};
}

Digest combine_hashes(const WeightSource& source, std::span<const Digest> hashes) {
  Hasher hasher;
  hasher.text("banyan weights 1").number(kHashBlockBytes);
  size_t next = 0;
  for (const TensorInfo* tensor : source.tensors()) {
    hasher.text(tensor->name).text(dtype_name(tensor->dtype));
    hasher.number(static_cast<uint64_t>(tensor->blocks)).number(tensor->shape.size());
    for (int64_t extent : tensor->shape) hasher.number(static_cast<uint64_t>(extent));
    size_t blocks = (tensor->bytes.size() + kHashBlockBytes - 1) / kHashBlockBytes;
    CHECK(next + blocks <= hashes.size(), "{} hashes", hashes.size());
    for (size_t end = next + blocks; next < end; ++next) hasher.digest(hashes[next]);
  }
  CHECK(next == hashes.size(), "{} hashes of {} blocks", hashes.size(), next);
  return hasher.finish();
}

Result<Digest> weights_digest(const WeightSource& source, const std::string& cache_folder,
                              ThreadPool& threads, const LoadProgress& progress) {
  std::vector<WeightBlock> blocks = weight_blocks(source);
  HashCache cache(cache_folder);
  std::vector<Digest> hashes(blocks.size());
  int64_t total = 0, done = 0;
  for (const WeightBlock& block : blocks) total += block.bytes;
  for (const FileBlocks& of_file : by_file(source, blocks)) {
    auto report = [&](int64_t of_this, int64_t) {
      if (progress) progress(done + of_this, total);
    };
    std::vector<Digest> some = TRY(hash_file(source, of_file, cache, threads, report));
    for (size_t i = 0; i < some.size(); ++i) hashes[of_file.numbers[i]] = some[i];
    for (const WeightBlock& block : of_file.blocks) done += block.bytes;
  }
  return combine_hashes(source, hashes);
}

}  // namespace banyan
