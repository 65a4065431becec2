#include "text/tokenizer/tokenizer_config.h"

#include <algorithm>
#include <string_view>

#include "base/file.h"
#include "base/gguf.h"
#include "text/json_fields.h"
#include "text/tokenizer/gguf_tokenizer.h"
#include "text/tokenizer/vocabulary.h"
#include "unicode/unicode.h"

namespace banyan {
namespace {

constexpr size_t kTemplateBytesMax = 4 << 20;
constexpr JsonLimits kLimits{.bytes_max = 64 << 20, .keys_per_object_max = 1 << 14};

// Python's JSON also has NaN, Infinity and -Infinity. No field that we read uses them, so they are
// read as null, which equals absent.
std::string without_nonfinite(std::string_view text) {
  std::string out;
  bool inside = false;  // inside a string
  for (size_t at = 0; at < text.size(); ++at) {
    const std::string_view rest = text.substr(at);
    if (inside || text[at] == '"') {
      if (text[at] == '"') inside = !inside;
      if (text[at] == '\\' && rest.size() > 1) out += text[at++];
      out += text[at];
      continue;
    }
    size_t size = 0;
    for (std::string_view name : {"NaN", "Infinity", "-Infinity"}) {
      if (rest.starts_with(name)) size = name.size();
    }
    out += size > 0 ? "null" : rest.substr(0, 1);
    if (size > 0) at += size - 1;
  }
  return out;
}

// The object in a file, or an empty object if the file does not exist.
Result<Json> read_object(const std::string& model_dir, const std::string& name) {
  const std::string path = model_dir + "/" + name;
  if (!file_exists(path)) return Json::object();
  const std::string text = without_nonfinite(TRY(read_file(path, kLimits.bytes_max)));
  Json json = TRY(parse_json(text, path, kLimits));
  if (!json.is_object()) return corrupt("{}: expected an object, got {}", path, json.type_name());
  return json;
}

// A token is a string, or an object with its text under "content".
Result<std::string> token_text(const Json& json, const std::string& place) {
  if (json.is_string()) return json.get<std::string>();
  const JsonFields fields = TRY(JsonFields::of(json, place));
  return fields.string("content");
}

Status read_special_texts(const JsonFields& fields, SpecialTokens& special) {
  constexpr std::string_view kTokens[] = {"bos_token", "eos_token", "pad_token", "unk_token"};
  for (const auto& [key, value] : fields.json().items()) {
    if (!key.ends_with("_token") || value.is_null() || value.is_boolean()) continue;
    // Fields of other types may have such a name too.
    const bool is_token = value.is_string() || (value.is_object() && value.contains("content"));
    if (!is_token && std::ranges::find(kTokens, key) == std::end(kTokens)) continue;
    special.named.try_emplace(key, TRY(token_text(value, fields.place() + ": " + key)));
  }
  return {};
}

void name_special_tokens(SpecialTokens& special) {
  auto name = [&](const char* key, std::optional<SpecialToken>& token) {
    if (auto found = special.named.find(key); found != special.named.end()) {
      token = SpecialToken{found->second, std::nullopt};
    }
  };
  name("bos_token", special.bos);
  name("eos_token", special.eos);
  name("pad_token", special.pad);
  name("unk_token", special.unk);
}

// The ids under `key`: a number, an array of numbers or null.
Result<std::vector<TokenId>> read_ids(const JsonFields& fields, std::string_view key) {
  std::vector<TokenId> ids;
  const Json* value = fields.find(key);
  if (value == nullptr) return ids;
  const Json list = value->is_array() ? *value : Json::array({*value});
  for (const Json& id : list) {
    // Some files write -1 for none.
    if (id.is_number_integer() && id == -1) continue;
    if (!id.is_number_unsigned() || id.get<uint64_t>() > Vocabulary::kIdMax) {
      return fields.wrong(key, "token ids");
    }
    ids.push_back(id.get<TokenId>());
  }
  return ids;
}

Status read_token_ids(const JsonFields& fields, TokenizerConfig& config) {
  const auto bos = TRY(read_ids(fields, "bos_token_id"));
  const auto pad = TRY(read_ids(fields, "pad_token_id"));
  const auto eos = TRY(read_ids(fields, "eos_token_id"));
  if (!config.bos_id && !bos.empty()) config.bos_id = bos[0];
  if (!config.pad_id && !pad.empty()) config.pad_id = pad[0];
  if (config.special.eos_ids.empty()) config.special.eos_ids = eos;
  return {};
}

// Reads a template string, or a list of {"name": ..., "template": ...} with one named "default".
Status read_template(const JsonFields& fields, TokenizerConfig& config) {
  const Json* value = fields.find("chat_template");
  if (value == nullptr) return {};
  if (value->is_string()) {
    config.chat_template = value->get<std::string>();
    return {};
  }
  for (const Json& json : *TRY(fields.array("chat_template"))) {
    const JsonFields entry = TRY(JsonFields::of(json, fields.place() + ": chat_template"));
    const std::string name = TRY(entry.string("name"));
    std::string text = TRY(entry.string("template"));
    if (name == "default") config.chat_template = std::move(text);
  }
  return {};
}

Result<std::string> read_template_file(const std::string& path) {
  std::string text = TRY(read_file(path, kTemplateBytesMax));
  if (auto at = unicode::first_invalid(text)) {
    return corrupt("{}: not UTF-8 at byte {}", path, *at);
  }
  return text;
}

}  // namespace

Result<TokenizerConfig> read_tokenizer_config(const std::string& model_dir) {
  if (is_gguf_file(model_dir)) {
    MappedFile file = TRY(MappedFile::open(model_dir));
    return read_gguf_tokenizer_config(TRY(GgufPairs::parse(file.bytes(), model_dir)));
  }
  auto fields_of = [&](const Json& json, const char* name) {
    return JsonFields::of(json, model_dir + "/" + name);
  };
  TokenizerConfig config;
  config.json = TRY(read_object(model_dir, "tokenizer_config.json"));
  const JsonFields main = TRY(fields_of(config.json, "tokenizer_config.json"));
  TRY(read_special_texts(main, config.special));
  TRY(read_template(main, config));

  const Json map = TRY(read_object(model_dir, "special_tokens_map.json"));
  TRY(read_special_texts(TRY(fields_of(map, "special_tokens_map.json")), config.special));
  name_special_tokens(config.special);

  const Json chat = TRY(read_object(model_dir, "chat_template.json"));
  TRY(read_template(TRY(fields_of(chat, "chat_template.json")), config));
  std::string jinja = model_dir + "/chat_template.jinja";
  if (file_exists(jinja)) config.chat_template = TRY(read_template_file(jinja));

  for (const char* name : {"generation_config.json", "config.json"}) {
    const Json ids = TRY(read_object(model_dir, name));
    TRY(read_token_ids(TRY(fields_of(ids, name)), config));
  }
  return config;
}

Result<std::string> read_chat_template(const std::string& text_or_path) {
  bool is_text =
      text_or_path.find("{{") != std::string::npos || text_or_path.find("{%") != std::string::npos;
  if (is_text) return text_or_path;
  if (!file_exists(text_or_path)) {
    return not_found("chat template {}: no such file, nor is it Jinja text", quote(text_or_path));
  }
  return read_template_file(text_or_path);
}

}  // namespace banyan
