#include "server/worker/states_wire.h"

#include <algorithm>

#include "base/error.h"
#include "base/json.h"
#include "base/json_text.h"
#include "base/signed.h"
#include "server/worker/id_list.h"
#include "server/worker/wire.h"

namespace banyan {
namespace {

Status read_text(const Json& json, const char* name, std::string& text) {
  auto found = json.find(name);
  if (found == json.end() || !found->is_string()) {
    return invalid_argument("{}: a string is expected", name);
  }
  text = found->get<std::string>();
  return {};
}

Status read_head(std::string_view head, StatesRequest& request) {
  Json json = TRY(parse_json(head, "the first line"));
  if (!json.is_object()) return invalid_argument("the body does not begin with an object");
  if (json.value("version", Json()) != kWorkerProtocol) {
    return invalid_argument("version: this worker has {}; run all workers of one build",
                            kWorkerProtocol);
  }
  TRY(read_text(json, "state_digest", request.state_digest));
  TRY(read_text(json, "adapter", request.units.name_space.adapter));
  TRY(read_text(json, "cache_salt", request.units.name_space.salt));
  return read_text(json, "extra_key", request.units.name_space.extra_key);
}

}  // namespace

std::string write_states_request(const StatesRequest& request) {
  const PrefixNamespace& name_space = request.units.name_space;
  std::string body = dump_json({{"version", kWorkerProtocol},
                                {"state_digest", request.state_digest},
                                {"adapter", name_space.adapter},
                                {"cache_salt", name_space.salt},
                                {"extra_key", name_space.extra_key}});
  body += '\n';
  std::vector<int32_t> pages, classes;
  for (const RestoreUnit& unit : request.units.units) {
    pages.push_back(unit.page);
    classes.push_back(unit.unit_class);
  }
  append_ids(request.units.tokens, body);
  append_ids(pages, body);
  append_ids(classes, body);
  return body;
}

Result<StatesRequest> read_states_request(std::string_view body) {
  StatesRequest request;
  std::string_view head = body.substr(0, body.find('\n'));
  body.remove_prefix(std::min(head.size() + 1, body.size()));
  TRY(read_head(head, request));
  request.units.tokens = TRY(take_ids(body, "tokens"));
  std::vector<int32_t> pages = TRY(take_ids(body, "pages"));
  std::vector<int32_t> classes = TRY(take_ids(body, "classes"));
  if (!body.empty()) return invalid_argument("{} bytes follow the last list", body.size());
  if (pages.size() != classes.size()) {
    return invalid_argument("{} pages and {} classes are given", pages.size(), classes.size());
  }
  for (size_t i = 0; i < pages.size(); ++i) {
    request.units.units.push_back({.page = pages[i], .unit_class = classes[i]});
  }
  return request;
}

}  // namespace banyan
