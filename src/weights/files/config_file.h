// Typed, strict reading of a checkpoint's config.json. A family's reader is one statement per key:
//
//   ConfigFile file = TRY(ConfigFile::load(folder));
//   config.layers = file.integer("num_hidden_layers", 1, 10'000);
//   config.rope_theta = file.number_or("rope_theta", 10'000.0, 1.0, 1e12);
//   file.only("hidden_act", {"silu"});
//   file.expect(config.hidden % config.heads == 0, "hidden_size {} ...", config.hidden);
//   file.ignore({"initializer_range", "use_cache"});
//   TRY(file.finish());
//
// The first error sticks and finish() returns it, so no checks are needed in between. Every getter
// returns a value within its range even after an error, so code may divide by it. A null key counts
// as absent. Keys neither read nor ignored are in unread(); the loader reports them, since an
// unknown value may matter.
//
// A ConfigFile is a cheap handle. Copies and the sub-objects from object() share the document, the
// error and the record of keys. One thread at a time.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "banyan/status.h"
#include "base/error.h"
#include "base/json.h"

namespace banyan {

class ConfigFile {
 public:
  // Reads `folder`/config.json.
  static Result<ConfigFile> load(const std::string& folder);
  // Errors begin with `path`. kCorrupt: not a single JSON object within the limits of base/json.h.
  static Result<ConfigFile> parse(std::string_view text, const std::string& path);

  // The model class that saved the checkpoint: the first of "architectures".
  Result<std::string> architecture() const;

  bool has(std::string_view key) const;  // present and not null; does not mark it as read
  bool is_null(
      std::string_view key) const;  // present but null, which some families distinguish from absent

  bool is_list(std::string_view key) const;  // present and a list

  // A required value (kCorrupt if absent), one with a fallback, and an optional one. Bounds are
  // inclusive. An integer must be written as one (4096, not 4096.0 or "4096"); a number may be. A
  // fallback outside the bounds, such as one computed from other keys, is also an error.
  int64_t integer(std::string_view key, int64_t min, int64_t max) const;
  int64_t integer_or(std::string_view key, int64_t fallback, int64_t min, int64_t max) const;
  std::optional<int64_t> maybe_integer(std::string_view key, int64_t min, int64_t max) const;
  double number(std::string_view key, double min, double max) const;
  double number_or(std::string_view key, double fallback, double min, double max) const;
  std::optional<double> maybe_number(std::string_view key, double min, double max) const;
  bool flag(std::string_view key) const;
  bool flag_or(std::string_view key, bool fallback) const;
  std::string text(std::string_view key) const;
  std::string text_or(std::string_view key, std::string_view fallback) const;
  std::optional<std::string> maybe_text(std::string_view key) const;

  // Lists; empty if absent. A single number is read as a list of one, as for eos_token_id.
  std::vector<int64_t> integers(std::string_view key, int64_t min, int64_t max) const;
  std::vector<double> numbers(std::string_view key, double min, double max) const;
  std::vector<std::string> texts(std::string_view key) const;

  // These do not mark a value as read. Whether it disables a feature (absent, null, false, 0 or
  // empty), is one of these values, or is an object; and its text for messages.
  bool is_off(std::string_view key) const;
  bool holds(std::string_view key, std::initializer_list<Json> values) const;
  bool is_object(std::string_view key) const;
  std::string shown(std::string_view key) const;

  // Which of several synonyms the file uses; the first if none. If it uses several, their values
  // must be equal.
  std::string_view name_of(std::initializer_list<std::string_view> names) const;

  // The object under `key`; an empty one if it is absent.
  ConfigFile object(std::string_view key) const;
  // The keys of this object, in file order.
  std::vector<std::string> keys() const;

  // Rejects (kUnsupported) any value that is not in `supported`; absent is allowed. The list has
  // JSON values: only("hidden_act", {"silu"}), only("attention_bias", {false}).
  void only(std::string_view key, std::initializer_list<Json> supported) const;
  // Records an error (kUnsupported) unless `holds`; the formatted text follows the file's name.
  template <class... Args>
  void expect(bool holds, fmt::format_string<Args...> format, Args&&... args) const {
    if (!holds) fail(ErrorCode::kUnsupported, fmt::format(format, std::forward<Args>(args)...));
  }
  // Rejects (kUnsupported) every other key of this object unless it is null.
  void only_keys(std::initializer_list<std::string_view> known) const;
  // Marks keys that do not affect the model's computation as read.
  void ignore(std::initializer_list<std::string_view> keys) const;
  // Marks the object under `key`, with all its contents, as read.
  void ignore_object(std::string_view key) const;

  // Every value that a getter returned, as JSON, by "key" or "object.key", including defaults for
  // absent keys. Keys checked by only() are left out, since all their allowed values mean the same
  // computation.
  std::map<std::string, std::string> values() const;

  Status finish() const;                    // the first error, if any
  std::vector<std::string> unread() const;  // "key" or "object.key"; not null

 private:
  struct Shared;

  ConfigFile(std::shared_ptr<Shared> shared, const Json* object, std::string prefix);

  const Json* look_up(std::string_view key) const;  // marks as read; nullptr if absent or null
  const Json* demand(std::string_view key) const;   // likewise, and records an error if absent
  // Readers of one value. On an invalid value they record the error and return nullopt.
  std::optional<int64_t> as_integer(std::string_view key, const Json& value, int64_t min,
                                    int64_t max) const;
  std::optional<double> as_number(std::string_view key, const Json& value, double min,
                                  double max) const;
  std::optional<bool> as_flag(std::string_view key, const Json& value) const;
  std::optional<std::string> as_text(std::string_view key, const Json& value) const;
  // Records the value that a getter returns, and returns it.
  template <class T>
  T give(std::string_view key, T value) const;
  template <class T>
  std::optional<T> give(std::string_view key, std::optional<T> value) const;
  void fail(ErrorCode code, const std::string& message) const;
  void wrong(std::string_view key, const Json& value, std::string_view demanded) const;

  std::shared_ptr<Shared> shared_;
  const Json* object_;  // in shared_->root, or an empty object
  std::string prefix_;  // "" or "rope_scaling."
};

}  // namespace banyan
