#include "base/json.h"

#include <string>
#include <unordered_set>
#include <vector>

#include "base/error.h"

namespace banyan {
namespace {

// Thrown through nlohmann's parser and caught in parse_json; never leaves this file.
struct LimitExceeded {
  std::string message;
};

// Sees every value as it is parsed and stops the parse at the first thing that is not allowed.
class Guard {
 public:
  explicit Guard(const JsonLimits& limits) : limits_(limits) {}

  bool operator()(int depth, Json::parse_event_t event, Json& value) {
    using Event = Json::parse_event_t;
    if (depth > limits_.depth_max) {
      throw LimitExceeded{fmt::format("nested deeper than {} levels", limits_.depth_max)};
    }
    if (event == Event::object_start) keys_.emplace_back();
    if (event == Event::object_end) keys_.pop_back();
    if (event == Event::key) add_key(value.get_ref<const std::string&>());
    return true;
  }

 private:
  void add_key(const std::string& key) {
    if (!keys_.back().insert(key).second) {
      throw LimitExceeded{fmt::format("the key \"{}\" appears twice in one object", key)};
    }
    if (keys_.back().size() > limits_.keys_per_object_max) {
      throw LimitExceeded{
          fmt::format("an object has more than {} keys", limits_.keys_per_object_max)};
    }
  }

  const JsonLimits& limits_;
  std::vector<std::unordered_set<std::string>> keys_;
};

}  // namespace

Result<Json> parse_json(std::string_view text, std::string_view what, JsonLimits limits) {
  if (text.size() > limits.bytes_max) {
    return exhausted("{}: {} bytes of JSON, the limit is {}", what, text.size(), limits.bytes_max);
  }
  try {
    return Json::parse(text.begin(), text.end(), Guard(limits));
  } catch (const LimitExceeded& limit) {
    return corrupt("{}: {}", what, limit.message);
  } catch (const Json::exception& e) {
    return corrupt("{}: not valid JSON: {}", what, e.what());
  }
}

}  // namespace banyan
