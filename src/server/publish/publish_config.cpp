#include "server/publish/publish_config.h"

#include <limits>

#include "base/error.h"
#include "base/json.h"
#include "base/quote.h"

namespace banyan {
namespace {

constexpr std::string_view kOption = "--kv-events-config";

// Reads one key of the object. Returns whether `key` is that key.
class KeyReader {
 public:
  KeyReader(const std::string& key, const Json& value) : key_(key), value_(value) {}

  bool flag(const char* name, bool& target) {
    if (key_ != name) return false;
    if (!value_.is_boolean()) return fail("true or false");
    target = value_.get<bool>();
    return true;
  }
  bool text(const char* name, std::string& target, bool may_be_null) {
    if (key_ != name) return false;
    if (value_.is_null() && may_be_null) return true;
    if (!value_.is_string()) return fail("a text");
    target = value_.get<std::string>();
    return true;
  }
  template <class Number>
  bool number(const char* name, Number& target) {
    if (key_ != name) return false;
    constexpr int64_t kMost = std::numeric_limits<int>::max();
    if (!value_.is_number_integer() || value_ < 1 || value_ > kMost) {
      return fail("a number from 1 on");
    }
    target = value_.get<Number>();
    return true;
  }
  const std::string& problem() const { return problem_; }

 private:
  bool fail(std::string_view wanted) {
    problem_ = fmt::format("{}: {} is not {}", kOption, quote(key_), wanted);
    return true;
  }

  const std::string& key_;
  const Json& value_;
  std::string problem_;
};

}  // namespace

Result<KvPublishConfig> KvPublishConfig::parse(std::string_view text) {
  Json json = TRY(parse_json(text, kOption));
  if (!json.is_object()) return invalid_argument("{} must be a JSON object", kOption);
  KvPublishConfig config;
  std::string publisher = "zmq";
  for (const auto& [key, value] : json.items()) {
    KeyReader reader(key, value);
    bool known = reader.flag("enable_kv_cache_events", config.enabled) ||
                 reader.text("publisher", publisher, true) ||
                 reader.text("endpoint", config.endpoint, false) ||
                 reader.text("replay_endpoint", config.replay_endpoint, true) ||
                 reader.number("buffer_steps", config.batches_kept) ||
                 reader.number("hwm", config.high_water_mark) ||
                 reader.number("max_queue_size", config.events_queued) ||
                 reader.text("topic", config.topic, false);
    if (!known) return invalid_argument("{}: the key {} is not supported", kOption, quote(key));
    if (!reader.problem().empty()) return invalid_argument("{}", reader.problem());
  }
  if (publisher != "zmq" && publisher != "null") {
    return invalid_argument("{}: publisher {} is not zmq or null", kOption, quote(publisher));
  }
  if (publisher == "null") config.enabled = false;
  if (config.enabled && config.endpoint.empty()) {
    return invalid_argument("{}: the endpoint is empty; give one as tcp://*:5557", kOption);
  }
  return config;
}

}  // namespace banyan
