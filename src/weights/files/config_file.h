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
// The first error sticks and finish() returns it, so the lines between need no checks. Every
// getter returns a value that is inside its range even after an error: code that divides by it
// needs no guard. A key that is null counts as absent. A key that nobody read, and nobody said to
// ignore, is in unread(): the loader reports those, since a value that we do not know of may
// matter.
//
// A ConfigFile is a cheap handle; copies, and the sub-objects that object() gives, share the
// document, the error and the record of keys. One thread at a time.
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
  // Messages begin with `path`. kCorrupt: not one JSON object within the limits of base/json.h.
  static Result<ConfigFile> parse(std::string_view text, const std::string& path);

  // The class that the checkpoint was saved from: the first of the file's "architectures".
  Result<std::string> architecture() const;

  bool has(std::string_view key) const;  // present and not null; does not count as reading it
  bool is_null(
      std::string_view key) const;  // written as null, which some families tell from absent

  // A required value (kCorrupt when absent), one with a fallback, one that may be absent. Bounds
  // are inclusive. An integer must be written as one (4096, not 4096.0 or "4096"); a number may.
  // A fallback outside the bounds, as one computed from other keys can be, is an error too.
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

  // Lists; empty when absent. One number also stands for a list of one, as in eos_token_id.
  std::vector<int64_t> integers(std::string_view key, int64_t min, int64_t max) const;
  std::vector<double> numbers(std::string_view key, double min, double max) const;
  std::vector<std::string> texts(std::string_view key) const;

  // Of values that nobody may have read. Whether one asks for nothing: absent, null, false, 0 or
  // empty; whether it is one of these; whether it is an object; and as text, for messages.
  bool is_off(std::string_view key) const;
  bool holds(std::string_view key, std::initializer_list<Json> values) const;
  bool is_object(std::string_view key) const;
  std::string shown(std::string_view key) const;

  // Which of several names for the same thing the file uses, or the first of them. Where it uses
  // more than one, their values must be the same.
  std::string_view name_of(std::initializer_list<std::string_view> names) const;

  // The object under `key`; one without keys when it is absent.
  ConfigFile object(std::string_view key) const;
  // The keys of this object, in the order of the file.
  std::vector<std::string> keys() const;

  // Refuses (kUnsupported) any value but the `supported` ones; absent is fine. Our list is of JSON
  // values: only("hidden_act", {"silu"}), only("attention_bias", {false}).
  void only(std::string_view key, std::initializer_list<Json> supported) const;
  // Records an error (kUnsupported) unless `holds`; the format's text follows the file's name.
  template <class... Args>
  void expect(bool holds, fmt::format_string<Args...> format, Args&&... args) const {
    if (!holds) fail(ErrorCode::kUnsupported, fmt::format(format, std::forward<Args>(args)...));
  }
  // Refuses (kUnsupported) every key of this object but these, unless it is null.
  void only_keys(std::initializer_list<std::string_view> known) const;
  // Counts keys that do not change what the model computes as read.
  void ignore(std::initializer_list<std::string_view> keys) const;
  // Counts the object under `key` as read, with all that is in it.
  void ignore_object(std::string_view key) const;

  // Every value that a getter gave, as JSON, by "key" or "object.key": defaults stand for what is
  // absent. What only() allows is not among them: its values mean one computation.
  std::map<std::string, std::string> values() const;

  Status finish() const;                    // the first error, if there was one
  std::vector<std::string> unread() const;  // "key" or "object.key"; not null

 private:
  struct Shared;

  ConfigFile(std::shared_ptr<Shared> shared, const Json* object, std::string prefix);

  const Json* look_up(std::string_view key) const;  // marks as read; nullptr when absent or null
  const Json* demand(std::string_view key) const;   // and an error when absent
  // The readers of one value: nullopt, after recording the error, when it is not as it must be.
  std::optional<int64_t> as_integer(std::string_view key, const Json& value, int64_t min,
                                    int64_t max) const;
  std::optional<double> as_number(std::string_view key, const Json& value, double min,
                                  double max) const;
  std::optional<bool> as_flag(std::string_view key, const Json& value) const;
  std::optional<std::string> as_text(std::string_view key, const Json& value) const;
  // Records what a getter gives, and gives it.
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
