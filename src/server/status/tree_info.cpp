#include "server/status/tree_info.h"

#include <memory>

#include "base/json.h"
#include "engine/assemble.h"
#include "llm/engine_thread.h"
#include "llm/llm_parts.h"
#include "server/status/count_parameter.h"
#include "server/token_text.h"

namespace banyan {
namespace {

constexpr int64_t kLimitDefault = 512;
constexpr int64_t kLimitMax = 4096;

Json text_json(const TreeBranch& branch, const Tokenizer* tokenizer) {
  if (tokenizer == nullptr || branch.is_private) return nullptr;
  std::string bytes;
  for (PrefixToken token : branch.beginning) {
    if (token >= 0) bytes += tokenizer->token_bytes(token);
  }
  return valid_text(bytes);
}

Json branch_json(const TreeBranch& branch, const Tokenizer* tokenizer) {
  return {{"id", branch.id},
          {"parent", branch.parent < 0 ? Json() : Json(branch.parent)},
          {"namespace", branch.name_space},
          {"begin", branch.begin},
          {"end", branch.end},
          {"pages", branch.pages},
          {"snapshots", branch.snapshots},
          {"sequences", branch.sequences},
          {"hits", branch.hits},
          {"last_use", branch.last_use},
          {"text", text_json(branch, tokenizer)}};
}

Json tree_json(const Service& service, const TreeView& view) {
  const ServerConfig& config = service.config();
  bool one_reader = config.api_keys.empty() ? config.on_loopback() : config.api_keys.size() == 1;
  const Tokenizer* tokenizer = one_reader ? tokenizer_of(service.llm()) : nullptr;
  const EngineStats& stats = service.engine_stats();
  Json branches = Json::array();
  for (const TreeBranch& branch : view.branches) {
    branches.push_back(branch_json(branch, tokenizer));
  }
  return {{"page_size", service.engine_info().page_size_tokens},
          {"pages_total", stats.pages_total},
          {"pages_free", stats.pages_free},
          {"pages_cached", stats.pages_cached},
          {"snapshots_cached", stats.slots_cached},
          {"slots_total", stats.slots_total},
          {"last_use", view.last_use},
          {"complete", view.complete},
          {"branches", std::move(branches)}};
}

}  // namespace

void radix_tree_info(Service& service, HttpRequest request, ResponderPtr responder) {
  Result<int64_t> limit = count_parameter(request, "limit", kLimitDefault, kLimitMax);
  if (!limit) return responder->respond_error(400, limit.error().message, "limit");
  auto tree = std::make_shared<TreeView>();
  service.engine()->run(
      [tree, limit = *limit](Engine& engine) {
        *tree = EngineAssembly::tree_view(engine, {.branches_max = limit});
      },
      [&service, tree, responder] { responder->respond(200, tree_json(service, *tree)); });
}

}  // namespace banyan
