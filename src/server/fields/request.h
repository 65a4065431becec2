// The fields of a JSON object from outside, read with their types and ranges.
//
// Strict: a number must be one (no strings, no 5.0 where an integer is meant) and in range; null is
// the same as absent. The first field that is wrong is remembered and the rest is read as absent,
// so that a reader is a list of fields and one finish() at its end.
//
// Belongs to one thread; the object must outlive it.
#pragma once

#include <cstdint>
#include <expected>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "banyan/request.h"
#include "banyan/status.h"
#include "base/json.h"

namespace banyan {

// Why a request is refused, as OpenAI's clients expect it.
struct RequestError {
  RequestError(Error error) : error(std::move(error)) {}  // NOLINT: any Error is one
  RequestError(Error error, std::string param, std::string code = {})
      : error(std::move(error)), param(std::move(param)), code(std::move(code)) {}

  Error error;
  std::string param;  // the field; empty: none in particular
  std::string code;   // a name that programs look for; empty: none
  Json details = {};  // more members of the error, an object; null: none
};

template <class T>
using Parsed = std::expected<T, RequestError>;

class RequestFields {
 public:
  // `place` comes before names in messages: "sampling_params." A value that is no object has no
  // fields and is an error.
  explicit RequestFields(const Json& object, std::string place = {});

  // Null if absent or null.
  const Json* find(const char* name) const;

  bool flag(const char* name, bool fallback);
  int64_t integer(const char* name, int64_t fallback, int64_t min, int64_t max);
  std::optional<int64_t> integer_if(const char* name, int64_t min, int64_t max);
  // Any 64 bits: -1 is 2^64 - 1.
  std::optional<uint64_t> bits_if(const char* name);
  float number(const char* name, float fallback, float min, float max);
  std::string string(const char* name, size_t bytes_max);
  // A string or a list of them; empty ones are left out.
  std::vector<std::string> strings(const char* name, size_t count_max, size_t bytes_max);
  // A list of token ids, or one id.
  std::vector<TokenId> token_ids(const char* name, size_t count_max);

  // Refuses the request when one of these fields says more than null, false, "", [] or {}.
  void refuse(std::initializer_list<const char*> names);
  // Refuses the request when one of these fields has a value that is not on its list, which is
  // JSON. Null is on each.
  struct Accepted {
    const char* name;
    const char* values;
  };
  void accept_only(std::initializer_list<Accepted> fields);
  void fail(const char* name, std::string message, ErrorCode code = ErrorCode::kInvalidArgument);

  // With a name that programs look for.
  void fail_as(const char* error_name, const char* name, std::string message, ErrorCode code);

  std::expected<void, RequestError> finish();
  const std::string& place() const { return place_; }

 private:
  std::optional<int64_t> read_integer(const char* name, const Json& value, int64_t min,
                                      int64_t max);

  const Json& object_;
  std::string place_;
  std::optional<RequestError> error_;
};

// A token id list, checked: `place` names it in the error.
Result<std::vector<TokenId>> read_token_ids(const Json& list, std::string_view place,
                                            size_t count_max);

// A value as it is shown in a message: its JSON, cut when it is long.
std::string show(const Json& value);

}  // namespace banyan
