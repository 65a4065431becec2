// Converts a GGUF file's metadata to the model's config.json, so that each family has one reader
// for both file types.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "banyan/status.h"
#include "base/error.h"
#include "base/json.h"
#include "weights/files/config_file.h"
#include "weights/files/gguf.h"

namespace banyan {

// kCorrupt names the key: a value is missing or contradicts another.
Result<ConfigFile> gguf_config(const GgufFile& file);

// Builds the config.json. Metadata keys are those below "<architecture>."; the first error sticks,
// and getters return a usable value after it.
class GgufConfig {
 public:
  explicit GgufConfig(const GgufFile& file);

  Result<Json> make();

  // These read the metadata and mark keys as read. An integer beyond 2^31 is an error.
  bool has(std::string_view key);
  int64_t integer(std::string_view key, int64_t fallback);
  double number(std::string_view key, double fallback);
  bool flag(std::string_view key, bool fallback);
  std::vector<int64_t> integers(std::string_view key);
  std::vector<double> numbers(std::string_view key);
  void ignore(std::string_view key) { used_.insert(prefix_ + std::string(key)); }
  // The value shared by all layers; an error if layers differ.
  int64_t of_all_layers(std::string_view key);
  int64_t required(std::string_view key);  // the same; an error if it is missing or not positive

  bool stores(std::string_view tensor) const { return file_.find(tensor) != nullptr; }
  int64_t layers() const { return layers_; }  // without multi-token prediction layers
  int64_t heads() const { return heads_; }
  int64_t hidden() const { return hidden_; }
  int64_t head_dim() const { return head_dim_; }
  const GgufFile& file() const { return file_; }

  void set(std::string_view key, Json value) { json_[std::string(key)] = std::move(value); }
  void erase(std::string_view key) { json_.erase(std::string(key)); }
  void copy(std::string_view theirs, std::string_view ours);
  template <class... Args>
  void expect(bool holds, fmt::format_string<Args...> format, Args&&... args) {
    if (!holds) fail(unsupported(format, std::forward<Args>(args)...).error());
  }
  // An error unless experts are chosen by this function, or the file does not say.
  void expect_gating(int64_t number, std::string_view name);
  // Sets the attention window; null if the file has none. "layer_types" lists the sliding layers,
  // if the file names them.
  void set_window();

 private:
  template <class T>
  std::optional<T> take(Result<T> result);
  void fail(const Error& error);
  int64_t bounded(std::string_view key, int64_t value);
  void read_sizes();
  void read_heads();
  void read_biases();
  void read_rope();
  void read_yarn(Json& rope);
  void keep_unread();
  std::string stored_dtype() const;

  const GgufFile& file_;
  std::string prefix_;
  Json json_ = Json::object();
  std::optional<Error> error_;
  std::set<std::string, std::less<>> used_;
  int64_t layers_ = 1, heads_ = 1, hidden_ = 1, head_dim_ = 1;
};

}  // namespace banyan
