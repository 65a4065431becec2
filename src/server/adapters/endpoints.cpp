#include "server/adapters/endpoints.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/quote.h"
#include "server/adapters/scales.h"
#include "server/error.h"
#include "server/fields/sampling.h"
#include "server/json/endpoint.h"

namespace banyan {
namespace {

constexpr size_t kPathBytesMax = 4096;

struct Wanted {
  AdapterSource source;
  Status possible = {};                         // why it cannot be loaded, or
  std::shared_ptr<const PackedAdapter> packed;  // what is to be loaded
};

Parsed<Wanted> read_wanted(const Json& body, bool loads) {
  RequestFields fields(body);
  Wanted wanted{.source = {.name = fields.string("lora_name", kNameBytesMax)}};
  if (wanted.source.name.empty()) fields.fail("lora_name", " is missing");
  if (loads) {
    wanted.source.path = fields.string("lora_path", kPathBytesMax);
    if (wanted.source.path.empty()) fields.fail("lora_path", " is missing");
    fields.refuse({"load_inplace", "is_3d_lora_weight"});
    fields.flag("pinned", false);  // SGLang's: an adapter stays until it is unloaded
  }
  TRY(fields.finish());
  if (loads) TRY(wanted.source.validate());
  return wanted;
}

Json by_name(const Service& service) {
  Json all = Json::object();
  for (const AdapterInfo& adapter : service.adapters()) all[adapter.name] = adapter.path;
  return all;
}

// A mistake in a client's files is the client's.
int status_of(const Error& error) {
  int status = http_status(error.code);
  return status == 500 || error.code == ErrorCode::kExhausted ? 400 : status;
}

void answer(Service& service, bool in_words, const std::string& name, std::string_view done,
            const Status& status, Responder& responder) {
  if (in_words) {
    if (!status) return responder.respond_error(status_of(status.error()), status.error().message);
    return responder.respond(
        200, fmt::format("Success: LoRA adapter '{}' {} successfully.", name, done), "text/plain");
  }
  responder.respond(status ? 200 : status_of(status.error()),
                    Json{{"success", status.has_value()},
                         {"error_message", status ? "" : status.error().message},
                         {"loaded_adapters", by_name(service)}});
}

// Changes the engine's adapters by `change` between two steps.
void change(Service& service, bool in_words, const std::string& name, std::string_view done,
            std::function<Status(Engine&)> change, const ResponderPtr& responder) {
  auto status = std::make_shared<Status>();
  service.engine()->run(
      [status, change = std::move(change)](Engine& engine) { *status = change(engine); },
      [&service, in_words, name, done, status, responder] {
        answer(service, in_words, name, done, *status, *responder);
      });
}

bool may_change(const Service& service, Responder& responder) {
  const ServerConfig& config = service.config();
  if (!config.runtime_adapters) {
    responder.respond_error(
        400,
        "adapters are loaded and unloaded by clients only with --enable-lora, since their paths "
        "open files of this machine");
    return false;
  }
  if (config.on_loopback() || !config.api_keys.empty()) return true;
  responder.respond_error(403,
                          "an adapter's path opens files of this machine, so loading one needs "
                          "--api-key where other machines reach the server");
  return false;
}

// What needs no look into the adapter's files, which may be large.
Status check_new(const RequestContext& context, const Engine& engine, const std::string& name) {
  if (context.is_model(name)) {
    return invalid_argument("lora_name is {}, which is the model's own name", quote(name));
  }
  std::vector<AdapterInfo> loaded = engine.adapters();
  if (std::ranges::find(loaded, name, &AdapterInfo::name) != loaded.end()) {
    return invalid_argument("adapter {} is already loaded; unload it first", quote(name));
  }
  if (std::ssize(loaded) < engine.info().adapters_max) return {};
  return invalid_argument(
      "adapter {}: there is room for {} adapters (--max-loaded-loras), {} are "
      "loaded",
      quote(name), engine.info().adapters_max, loaded.size());
}

bool answers_in_words(const HttpRequest& request) {
  return request.path.starts_with("/v1/");
}

}  // namespace

void load_adapter(Service& service, HttpRequest request, ResponderPtr responder) {
  if (!may_change(service, *responder)) return;
  bool in_words = answers_in_words(request);
  const Engine& engine = service.model_engine();
  auto read = [&engine](const RequestContext& context, const Json& body) -> Parsed<Wanted> {
    Wanted wanted = TRY(read_wanted(body, true));
    wanted.possible = check_new(context, engine, wanted.source.name);
    if (!wanted.possible) return wanted;
    auto packed = engine.pack_adapter(wanted.source);
    if (packed) {
      wanted.packed = *std::move(packed);
    } else {
      wanted.possible = std::unexpected(packed.error());
    }
    return wanted;
  };
  read_on_worker<Wanted>(
      service, std::move(request), responder, read, [&service, in_words, responder](Wanted wanted) {
        const std::string& name = wanted.source.name;
        if (!wanted.possible) {
          return answer(service, in_words, name, "", wanted.possible, *responder);
        }
        change(
            service, in_words, name, "added",
            [packed = std::move(wanted.packed)](Engine& owner) {
              return owner.add_adapter(packed);
            },
            responder);
      });
}

void unload_adapter(Service& service, HttpRequest request, ResponderPtr responder) {
  if (!may_change(service, *responder)) return;
  bool in_words = answers_in_words(request);
  auto read = [](const RequestContext&, const Json& body) { return read_wanted(body, false); };
  read_on_worker<Wanted>(service, std::move(request), responder, read,
                         [&service, in_words, responder](const Wanted& wanted) {
                           std::string name = wanted.source.name;
                           if (name == service.config().defaults.adapter) {
                             service.set_default_adapter({});  // requests would all fail
                           }
                           change(
                               service, in_words, name, "removed",
                               [name](Engine& owner) { return owner.remove_adapter(name); },
                               responder);
                         });
}

void llama_adapters(Service& service, HttpRequest, ResponderPtr responder) {
  Json all = Json::array();
  for (const AdapterInfo& adapter : service.adapters()) {
    bool chosen = adapter.name == service.config().defaults.adapter;
    all.push_back({{"id", all.size()}, {"path", adapter.path}, {"scale", chosen ? 1.0 : 0.0}});
  }
  responder->respond(200, all);
}

void set_llama_adapters(Service& service, HttpRequest request, ResponderPtr responder) {
  auto read = [](const RequestContext& context, const Json& body) -> Parsed<std::string> {
    return TRY(adapter_of_scales(body, context.adapters));
  };
  read_on_worker<std::string>(service, std::move(request), responder, read,
                              [&service, responder](std::string name) {
                                service.set_default_adapter(std::move(name));
                                responder->respond(200, Json{{"success", true}});
                              });
}

}  // namespace banyan
