#include "server/fields/infill.h"

#include <array>

#include "base/error.h"

namespace banyan {
namespace {

struct InfillNames {
  std::string_view prefix, suffix, middle;
};

constexpr auto kInfillNames = std::to_array<InfillNames>({
    {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"},     // Qwen 2.5 and 3 Coder
    {"<fim_prefix>", "<fim_suffix>", "<fim_middle>"},           // StarCoder, Granite
    {"<fim-prefix>", "<fim-suffix>", "<fim-middle>"},           // SantaCoder
    {"<|fim_begin|>", "<|fim_hole|>", "<|fim_end|>"},           // DeepSeek, in ASCII
    {"<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"},     // DeepSeek Coder, V2, V3
    {"▁<PRE>", "▁<SUF>", "▁<MID>"},                             // Code Llama
    {"<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>"},  // GLM 4
});

}  // namespace

std::optional<InfillTokens> find_infill_tokens(const Tokenizer& tokenizer) {
  for (const InfillNames& names : kInfillNames) {
    auto prefix = tokenizer.find(names.prefix), suffix = tokenizer.find(names.suffix),
         middle = tokenizer.find(names.middle);
    if (prefix && suffix && middle) return InfillTokens{*prefix, *suffix, *middle};
  }
  return std::nullopt;
}

Result<std::vector<TokenId>> infill_prompt(const Tokenizer* tokenizer, std::string_view prefix,
                                           std::string_view suffix,
                                           std::span<const InfillFile> files) {
  std::optional<InfillTokens> tokens;
  if (tokenizer != nullptr) tokens = find_infill_tokens(*tokenizer);
  if (!tokens) return unsupported("the model has no tokens that mark a text to be filled in");
  std::vector<TokenId> ids;
  // Start with the beginning-of-text token if the tokenizer adds one.
  const auto& bos = tokenizer->special().bos;
  std::vector<TokenId> with_special = TRY(tokenizer->encode("a"));
  if (bos && bos->id && with_special.front() == *bos->id) ids.push_back(*bos->id);
  constexpr EncodeOptions kAsText = {.add_special_tokens = false, .parse_special = false};
  auto add = [&](std::optional<TokenId> mark, std::string_view text) -> Status {
    if (mark) ids.push_back(*mark);
    std::vector<TokenId> more = TRY(tokenizer->encode(text, kAsText));
    ids.insert(ids.end(), more.begin(), more.end());
    return {};
  };
  auto repository = tokenizer->find("<|repo_name|>"), separator = tokenizer->find("<|file_sep|>");
  if (!files.empty() && repository) TRY(add(repository, "myproject\n"));
  for (const InfillFile& file : files) {
    std::string begin = separator ? file.name + "\n" : "\n\n--- snippet ---\n\n";
    TRY(add(separator, begin + file.text));
  }
  if (!files.empty() && separator) TRY(add(separator, "filename\n"));
  TRY(add(tokens->prefix, prefix));
  TRY(add(tokens->suffix, suffix));
  ids.push_back(tokens->middle);
  return ids;
}

}  // namespace banyan
