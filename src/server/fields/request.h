// Reads the fields of an untrusted JSON object, checking types and ranges.
//
// Strict: a number must be a number (no strings) and in range, an integer may be written as 5.0;
// null counts as absent. The first error is recorded, and every later field reads as absent. A
// reader is therefore a list of fields with one finish() at its end.
//
// Belongs to one thread. The JSON object must outlive it.
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

// An error in a request, with the members that OpenAI clients expect.
struct RequestError {
  RequestError(Error error) : error(std::move(error)) {}  // NOLINT: implicit, from any Error
  RequestError(Error error, std::string param, std::string code = {})
      : error(std::move(error)), param(std::move(param)), code(std::move(code)) {}

  Error error;
  std::string param;  // the offending field; empty: none in particular
  std::string code;   // machine-readable name; empty: none
  Json details = {};  // further members of the error object; null: none
};

template <class T>
using Parsed = std::expected<T, RequestError>;

class RequestFields {
 public:
  // `place` prefixes field names in messages: "sampling_params." A value that is not an object has
  // no fields and is an error.
  explicit RequestFields(const Json& object, std::string place = {});

  // Null if absent or null.
  const Json* find(const char* name) const;

  bool flag(const char* name, bool fallback);
  int64_t integer(const char* name, int64_t fallback, int64_t min, int64_t max);
  std::optional<int64_t> integer_if(const char* name, int64_t min, int64_t max);
  // Any 64 bits: -1 reads as 2^64 - 1.
  std::optional<uint64_t> bits_if(const char* name);
  float number(const char* name, float fallback, float min, float max);
  std::string string(const char* name, size_t bytes_max);
  // A string or a list of strings; empty ones are dropped.
  std::vector<std::string> strings(const char* name, size_t count_max, size_t bytes_max);
  // A list of token ids, or a single id.
  std::vector<TokenId> token_ids(const char* name, size_t count_max);

  // Refuses the request if any of these fields is other than null, false, "", [] or {}.
  void refuse(std::initializer_list<const char*> names);
  // The same of what no endpoint supports, under the names of every API: images, adapters, ...
  void refuse_unsupported();
  // Refuses the request if any of these fields has a value outside its list, which is JSON. Null is
  // always accepted.
  struct Accepted {
    const char* name;
    const char* values;
  };
  void accept_only(std::initializer_list<Accepted> fields);
  void fail(const char* name, std::string message, ErrorCode code = ErrorCode::kInvalidArgument);

  // With a machine-readable error name.
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

// Checks a list of token ids, which may be packed (base/packed_json.h); `place` names it in the
// error.
Result<std::vector<TokenId>> read_token_ids(const Json& list, std::string_view place,
                                            size_t count_max);

// The value as an integer, if it is one, as 5 or 5.0, and fits.
std::optional<int64_t> as_integer(const Json& value);

// A value for display in a message: its JSON, truncated when long.
std::string show(const Json& value);

}  // namespace banyan
