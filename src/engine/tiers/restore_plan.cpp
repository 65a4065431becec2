#include "engine/tiers/restore_plan.h"

#include <algorithm>

#include "base/signed.h"

namespace banyan {
namespace {

// Loading must be faster by this share. So the choice is at most this much worse than the better of
// both, and near ties are computed, which wears out no disk.
constexpr double kGain = 1.1;

// Walks over a prompt's pages and computes for each position what loading up to it takes.
class Walk {
 public:
  explicit Walk(const RestoreQuestion& question) : q_(question) {
    for (auto& counts : loadable_) counts.assign(1, {});
    gap_.fill(-1);
  }

  // False if some page of the path cannot be had.
  bool enter(int64_t page) {
    for (int c = 0; c < q_.classes.count; ++c) {
      if (!q_.classes[c].paged()) continue;
      auto i = as_size(c);
      bool loads = q_.units.loadable(page, c);
      loadable_[i].push_back(loadable_[i].back());
      if (loads) ++at(loadable_[i].back(), q_.units.layer(page, c));
      if (q_.units.missing(page, c) && !loads) gap_[i] = page;
    }
    return gap_[kPathClass] < page;
  }

  // What to load from each layer so that the end of `page`, the last that was entered, can be
  // resumed; false if it cannot.
  bool bytes(int64_t page, LayerBytes& bytes) const {
    bytes = {};
    for (int c = 0; c < q_.classes.count; ++c) {
      if (!q_.classes[c].decides()) continue;
      LayerCounts counts = {};
      if (!units(page, c, counts)) return false;
      int64_t all = 0;
      for (size_t layer = 0; layer < counts.size(); ++layer) {
        all += counts[layer];
        bytes[layer] += counts[layer] * at(q_.unit_bytes, c);
      }
      if (all > at(q_.room, c)) return false;
    }
    return true;
  }

 private:
  using LayerCounts = std::array<int64_t, kTierLayersMax>;

  bool units(int64_t page, int c, LayerCounts& counts) const {
    const UnitClass& unit_class = q_.classes[c];
    if (!unit_class.paged()) {
      if (!q_.units.missing(page, c)) return true;
      at(counts, q_.units.layer(page, c)) = 1;
      return q_.units.loadable(page, c);
    }
    auto i = as_size(c);
    int64_t size = q_.classes.page_size_tokens, end = (page + 1) * size;
    int64_t first = std::min(unit_class.reach_begin(end) / size, page + 1);
    if (unit_class.reach_begin(end) < end && gap_[i] >= first) return false;
    const LayerCounts& before = at(loadable_[i], first);
    for (size_t layer = 0; layer < counts.size(); ++layer) {
      counts[layer] = loadable_[i].back()[layer] - before[layer];
    }
    return true;
  }

  const RestoreQuestion& q_;
  PerClass<std::vector<LayerCounts>> loadable_;  // number of loadable pages before each
  PerClass<int64_t> gap_;  // the last page that is neither in memory nor stored
};

}  // namespace

RestorePlan plan_restore(const RestoreQuestion& q, const LayerCosts& load,
                         const PrefillCost& prefill) {
  RestorePlan best;
  int64_t size = q.classes.page_size_tokens;
  double computed_s = prefill.seconds(q.base, q.length), best_s = computed_s;
  Walk walk(q);
  for (int64_t page = 0; page < q.units.pages() && walk.enter(page); ++page) {
    int64_t end = (page + 1) * size;
    if (end % q.classes.resume_alignment_tokens != 0 || end < q.base + q.tokens_min) continue;
    LayerBytes bytes;
    if (!walk.bytes(page, bytes)) continue;
    double load_s = load.seconds(bytes, q.bytes_ahead);
    double s = load_s + prefill.seconds(end, q.length);
    best.too_dear = true;
    if (s >= best_s || kGain * load_s > prefill.seconds(q.base, end)) continue;
    best_s = s;
    best.end = end;
    best.bytes = bytes;
    best.load_s = load_s;
    best.saved_s = computed_s - s;
  }
  best.too_dear = best.too_dear && best.end == 0;
  return best;
}

std::vector<RestoreUnit> units_to_load(const StateClasses& classes, const PrefixUnits& units,
                                       int64_t end) {
  std::vector<RestoreUnit> needed;
  int64_t size = classes.page_size_tokens, pages = end / size;
  for (int64_t page = 0; page < pages; ++page) {
    for (int c = 0; c < classes.count; ++c) {
      if (!classes[c].decides() || !units.loadable(page, c)) continue;
      bool paged = classes[c].paged();
      bool in_reach = paged ? (page + 1) * size > classes[c].reach_begin(end) : page + 1 == pages;
      if (in_reach) needed.push_back({narrow<int32_t>(page), c});
    }
  }
  return needed;
}

}  // namespace banyan
