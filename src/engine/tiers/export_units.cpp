#include "engine/tiers/export_units.h"

#include <cstring>

#include "base/error.h"
#include "base/signed.h"
#include "cache/node_keys.h"
#include "engine/assemble.h"
#include "engine/runner.h"
#include "engine/schedule/scheduler.h"
#include "engine/tiers/open.h"
#include "tier/record.h"

namespace banyan {
namespace {

// A root that is open while this lives.
class OpenRoot {
 public:
  OpenRoot(RadixTree& tree, const PrefixNamespace& name_space)
      : tree_(tree), node_(tree.open(name_space)) {}
  ~OpenRoot() { tree_.close(node_); }
  OpenRoot(const OpenRoot&) = delete;
  OpenRoot& operator=(const OpenRoot&) = delete;

  RadixNode* node() const { return node_; }

 private:
  RadixTree& tree_;
  RadixNode* node_;
};

class Exporter {
 public:
  Exporter(const Runner& runner, std::string& out)
      : pieces_(runner.pools()),
        states_(tier_states(runner, pieces_, {})),
        keys_(states_.digest),
        out_(out) {}

  void add(RadixNode& node, int unit_class) {
    RecordShape shape = record_shape({}, states_, unit_class);
    TierRecord record{.key = {.page = keys_.of(node), .unit_class = unit_class},
                      .parent = keys_.of(*node.parent),
                      .end = node.end,
                      .tokens = node.tokens};
    unit_.clear();
    pieces_.add(unit_class, node.units[unit_class].unit, unit_);
    size_t begin = out_.size();
    out_.resize(begin + as_size(shape.bytes()));  // zeros, as the padding is
    auto bytes = std::as_writable_bytes(std::span(out_)).subspan(begin);
    seal_record(shape, record, 0, unit_, bytes.first(as_size(shape.header_bytes())), checksums_);
    std::byte* to = bytes.data() + shape.header_bytes();
    for (const TierPiece& piece : unit_) {
      std::memcpy(to, piece.data, piece.bytes);
      to += piece.bytes;
    }
  }

 private:
  UnitPieces pieces_;
  TierStates states_;
  NodeKeys keys_;
  Checksummer checksums_;
  std::vector<TierPiece> unit_;
  std::string& out_;
};

Status check(const Runner& runner, const UnitsOfPrefix& wanted) {
  if (!runner.queue().ops().host_memory) {
    return unsupported("states are on {}; other engines get those in a host's memory only so far",
                       runner.queue().ops().name);
  }
  if (runner.info().tp_size > 1) {
    return unsupported("states are divided among {} ranks; other engines get those of one rank",
                       runner.info().tp_size);
  }
  const StateClasses& classes = runner.classes();
  int64_t pages = std::ssize(wanted.tokens) / classes.page_size_tokens;
  for (const RestoreUnit& unit : wanted.units) {
    bool known = unit.page >= 0 && unit.page < pages && unit.unit_class >= 0 &&
                 unit.unit_class < classes.count && classes[unit.unit_class].decides();
    if (known) continue;
    return invalid_argument("there is no unit of class {} in page {} of {}", unit.unit_class,
                            unit.page, pages);
  }
  return {};
}

}  // namespace

Status export_units(Engine& engine, const UnitsOfPrefix& wanted, std::string& records) {
  auto [scheduler, runner] = EngineAssembly::parts(engine);
  TRY(check(runner, wanted));
  RadixTree& tree = scheduler.tree();
  OpenRoot root(tree, wanted.name_space);
  PrefixMatch match = tree.match(root.node(), wanted.tokens);
  int64_t page = runner.classes().page_size_tokens;
  std::vector<RadixNode*> path(as_size(match.deepest->end / page));
  for (RadixNode* n = match.deepest; n->parent != nullptr; n = n->parent) {
    at(path, n->begin() / page) = n;
  }
  Exporter exporter(runner, records);
  for (const RestoreUnit& unit : wanted.units) {
    if (unit.page >= std::ssize(path)) continue;
    RadixNode& node = *at(path, unit.page);
    if (node.units[unit.unit_class].unit >= 0) exporter.add(node, unit.unit_class);
  }
  return {};
}

}  // namespace banyan
