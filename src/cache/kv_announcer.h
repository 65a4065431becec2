// Announces what a tree gains and loses: from watching the tree to the event log. Covers full pages
// only, and only units of the classes that decide where a prompt can be resumed.
//
// Costs one key for each new page. Allocates nothing while a tree grows a page at a time. On the
// tree's thread; the tree must outlive it.
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
  // `states`: see NodeKeys; the others: see KvEventLog. Announces at once what the tree has
  // already.
  KvAnnouncer(RadixTree& tree, std::optional<StateDigest> states, uint64_t epoch,
              size_t events = KvEventLog::kEventsDefault);
  ~KvAnnouncer() override { tree_.unwatch(this); }
  KvAnnouncer(const KvAnnouncer&) = delete;
  KvAnnouncer& operator=(const KvAnnouncer&) = delete;

  // Called with each event from now on, after it is in the log, with its page's tokens and whether
  // it is the first page of a prefix. Both mean nothing for kCleared.
  using Observer =
      std::function<void(const KvEvent& event, std::span<const PrefixToken> tokens, bool first)>;
  void on_event(Observer observer) { observer_ = std::move(observer); }

  // Everything announced up to the event log().next() - 1.
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
  Observer observer_;     // empty: none
  bool cleared_ = false;  // what is evicted now was announced as one event
};

}  // namespace banyan
