#include "ops/draw.h"

#include <bit>
#include <cstring>
#include <span>
#include <utility>

#include "base/signed.h"

namespace banyan {

void DrawBatch::clear() {
  rows.clear();
  masks.clear();
  counts.clear();
  biases.clear();
  chosen.clear();
  tops = 0;
}

const DrawArgs& DrawImage::load(const DrawBatch& draws, DrawResults& results) {
  results.rows.resize(draws.rows.size());
  results.tops.resize(as_size(draws.tops));
  if (queue_.ops().host_memory) {
    args_ = {.draws = draws.rows.data(),
             .masks = draws.masks.data(),
             .counts = draws.counts.data(),
             .biases = draws.biases.data(),
             .chosen = draws.chosen.data(),
             .results = results.rows.data(),
             .tops = results.tops.data()};
  } else {
    load_block(draws, results);
  }
  return args_;
}

void DrawImage::load_block(const DrawBatch& draws, const DrawResults& results) {
  auto bytes_of = [](const auto& array) {
    return (std::span(array).size_bytes() + Arena::kAlignment - 1) / Arena::kAlignment *
           Arena::kAlignment;
  };
  size_t bytes = bytes_of(draws.rows) + bytes_of(draws.masks) + bytes_of(draws.counts) +
                 bytes_of(draws.biases) + bytes_of(draws.chosen) + bytes_of(results.rows) +
                 bytes_of(results.tops);
  if (block_.size() < bytes) {
    queue_.synchronise();
    block_ = DeviceBlock(queue_, std::bit_ceil(bytes));
  }
  std::byte* next = block_.data();
  auto place = [&]<class T>(const std::vector<T>& array) {
    return reinterpret_cast<T*>(std::exchange(next, next + bytes_of(array)));
  };
  auto upload = [&]<class T>(const std::vector<T>& array) {
    T* to = place(array);
    queue_.upload(to, array.data(), std::span(array).size_bytes());
    return to;
  };
  args_ = {.draws = upload(draws.rows),
           .masks = upload(draws.masks),
           .counts = upload(draws.counts),
           .biases = upload(draws.biases),
           .chosen = upload(draws.chosen),
           .results = place(results.rows),
           .tops = place(results.tops)};
}

void DrawDownload::start(const DrawImage& image, const DrawResults& results) {
  if (queue_.ops().host_memory) return;
  size_t rows = std::span(results.rows).size_bytes(), tops = std::span(results.tops).size_bytes();
  if (block_.size() < rows + tops) block_ = HostBlock(queue_, std::bit_ceil(rows + tops));
  queue_.download(block_.data(), image.args_.results, rows);
  if (tops > 0) queue_.download(block_.data() + rows, image.args_.tops, tops);
}

void DrawDownload::finish(DrawResults& results) const {
  if (queue_.ops().host_memory || results.rows.empty()) return;
  size_t rows = std::span(results.rows).size_bytes(), tops = std::span(results.tops).size_bytes();
  std::memcpy(results.rows.data(), block_.data(), rows);
  if (tops > 0) std::memcpy(results.tops.data(), block_.data() + rows, tops);
}

void draw(Step& s, Tensor logits, const LogitStats& stats, const DrawArgs& all, int64_t first) {
  DrawArgs args = all;
  args.launch = s.launch;
  args.logits = logits.f32();
  args.argmax = stats.argmax;
  args.log_sum_exp = stats.log_sum_exp;
  args.rows = logits.dim(0);
  args.vocabulary = logits.dim(1);
  args.draws += first;
  args.results += first;
  s.kernels.draw(args);
}

const TokenId* known_tokens(Step& s) {
  if (s.drawn == nullptr) return s.inputs.tokens;
  auto* known = s.arena.allocate_array<TokenId>(s.batch.rows());
  s.kernels.resolve_tokens({.launch = s.launch,
                            .tokens = s.inputs.tokens,
                            .drawn = s.drawn,
                            .out = known,
                            .rows = s.batch.rows()});
  return known;
}

}  // namespace banyan
