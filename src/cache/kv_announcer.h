// Announces what comes into a tree and what goes: from watch to event log. Full pages alone, and
// units of the classes that decide where a prompt can be resumed.
//
// Costs a key for each new page, and nothing where there is none. Allocates nothing while a tree
// grows a page at a time. On the tree's thread, which it must not outlive.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "cache/kv_event_log.h"
#include "cache/node_keys.h"
#include "cache/radix_tree.h"

namespace banyan {

class KvAnnouncer final : public UnitWatcher {
 public:
  // `states`: see NodeKeys; the others: see KvEventLog. What the tree has already is announced at
  // once.
  KvAnnouncer(RadixTree& tree, std::optional<StateDigest> states, uint64_t epoch,
              size_t events = KvEventLog::kEventsDefault);
  ~KvAnnouncer() override { tree_.unwatch(this); }
  KvAnnouncer(const KvAnnouncer&) = delete;
  KvAnnouncer& operator=(const KvAnnouncer&) = delete;

  // Called with each event from now on, after it is in the log, with its page's tokens and whether
  // none comes before it (both mean nothing where all is cleared).
  using Observer =
      std::function<void(const KvEvent& event, std::span<const PrefixToken> tokens, bool first)>;
  void on_event(Observer observer) { observer_ = std::move(observer); }

  // All that is announced, after the event log().next() - 1.
  std::vector<KvUnit> snapshot();
  const KvEventLog& log() const { return log_; }

  void gained(RadixNode& node) override;
  bool loses(RadixNode& node, int unit_class) override;
  void clears() override;

 private:
  template <class Visit>
  void visit_pages(Visit visit);
  void tell(KvOperation operation, RadixNode& node, int unit_class);

  RadixTree& tree_;
  KvEventLog log_;
  NodeKeys keys_;
  Observer observer_;     // empty: nobody
  bool cleared_ = false;  // what goes now was announced as one
};

}  // namespace banyan
