#include "support/tier/tier_rig.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "tier/disk/disk_store.h"

namespace banyan::test {
namespace {

constexpr int kPageTokens = 4;
constexpr int64_t kPageBytes = 3 * 4096, kSlotBytes = 5000;

PageKey page_of(int64_t number, const std::string& model) {
  Hasher hasher;
  Digest digest = hasher.text(model).number(static_cast<uint64_t>(number)).finish();
  PageKey key;
  std::copy_n(digest.bytes.begin(), key.bytes.size(), key.bytes.begin());
  return key;
}

}  // namespace

TierStates tier_states(const std::string& model) {
  TierStates states{.digest = StateDigest(Hasher().text(model).finish()),
                    .model = model,
                    .parts = {{"weights", model}}};
  states.classes.page_size_tokens = kPageTokens;
  states.classes.count = 2;
  states.classes.classes[1] = {.unit = StateUnit::kSlot, .reach = StateReach::kPoint};
  states.unit_bytes[0] = kPageBytes;
  states.unit_bytes[1] = kSlotBytes;
  return states;
}

TierUnit::TierUnit(const TierStates& states, int64_t number, int unit_class, bool aligned)
    : number_(number),
      bytes_(states.unit_bytes[static_cast<size_t>(unit_class)]),
      tokens_(kPageTokens, static_cast<PrefixToken>(number)),
      memory_(static_cast<size_t>(bytes_) + 8192) {
  record_ = {.key = {.page = page_of(number, states.model), .unit_class = unit_class},
             .parent = page_of(number / 2, states.model),
             .end = number * kPageTokens,
             .tokens = tokens_};
  auto at = reinterpret_cast<uintptr_t>(memory_.data());
  std::byte* begin = memory_.data() + (4096 - at % 4096) + (aligned ? 0 : 8);
  size_t count = unit_class == 0 ? 3 : 1;
  for (size_t i = 0; i < count; ++i) {
    size_t bytes = static_cast<size_t>(bytes_) / count;
    pieces_.push_back({.data = begin + i * bytes, .bytes = bytes});
  }
}

std::vector<std::byte> TierUnit::expected() const {
  std::vector<std::byte> bytes(static_cast<size_t>(bytes_));
  uint64_t state =
      static_cast<uint64_t>(number_) * 31 + static_cast<uint64_t>(record_.key.unit_class) + 1;
  for (std::byte& byte : bytes) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    byte = static_cast<std::byte>(state >> 56);
  }
  return bytes;
}

void TierUnit::fill() {
  std::vector<std::byte> bytes = expected();
  std::span<const std::byte> rest = bytes;
  for (const TierPiece& piece : pieces_) {
    std::memcpy(piece.data, rest.data(), piece.bytes);
    rest = rest.subspan(piece.bytes);
  }
}

void TierUnit::wipe() {
  for (const TierPiece& piece : pieces_) std::memset(piece.data, 0xab, piece.bytes);
}

bool TierUnit::right() const {
  std::vector<std::byte> bytes = expected();
  std::span<const std::byte> rest = bytes;
  for (const TierPiece& piece : pieces_) {
    if (std::memcmp(piece.data, rest.data(), piece.bytes) != 0) return false;
    rest = rest.subspan(piece.bytes);
  }
  return true;
}

TierConfig disk_config(const std::string& folder, int64_t size_bytes) {
  return {.backend = "disk",
          .directory = folder,
          .size_bytes = size_bytes,
          .min_free_bytes = 0,
          .write_share = 1,
          .slab_bytes = 256 << 10};
}

TierRig::TierRig(const TierConfig& config, const TierStates& states, Storage& storage)
    : config_(config), states_(states), storage_(storage) {
  reopen();
}

void TierRig::reopen() {
  store_.reset();
  auto store = config_.backend == "disk" ? open_disk_store(config_, states_, storage_)
                                         : make_store(config_, states_);
  CHECK(store, "{}", store.error().message);
  store_ = *std::move(store);
}

TierDone TierRig::wait_for(uint64_t id) {
  auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  std::vector<TierDone> done;
  while (std::chrono::steady_clock::now() < end) {
    store_->take_done(done);
    std::ranges::move(done, std::back_inserter(ended_));
    auto found = std::ranges::find(ended_, id, &TierDone::id);
    if (found != ended_.end()) {
      TierDone result = std::move(*found);
      ended_.erase(found);
      return result;
    }
    store_->wait(std::chrono::milliseconds(100));
  }
  CHECK(false, "job {} did not end", id);
}

TierOutcome TierRig::write(int64_t number, int unit_class, bool aligned) {
  TierUnit unit(states_, number, unit_class, aligned);
  unit.fill();
  store_->write(unit.job(++last_id_));
  return wait_for(last_id_).outcome;
}

TierOutcome TierRig::read(int64_t number, int unit_class, bool aligned) {
  TierUnit unit(states_, number, unit_class, aligned);
  unit.wipe();
  store_->read(unit.job(++last_id_));
  TierOutcome outcome = wait_for(last_id_).outcome;
  if (outcome == TierOutcome::kDone && !unit.right()) ++wrong_;
  return outcome;
}

bool TierRig::find(int64_t number, int unit_class) {
  TierKey key = TierUnit(states_, number, unit_class).key();
  store_->find({.id = ++last_id_, .keys = {&key, 1}});
  TierDone done = wait_for(last_id_);
  return done.found.at(0) != 0;
}

void TierRig::touch(int64_t number, int unit_class) {
  TierKey key = TierUnit(states_, number, unit_class).key();
  store_->touch({&key, 1});
}

}  // namespace banyan::test
