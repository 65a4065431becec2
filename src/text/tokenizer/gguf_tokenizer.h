// Reads the tokenizer from a GGUF file's metadata. `tokenizer.ggml.model` is "gpt2" (byte-level
// BPE, split as `tokenizer.ggml.pre` says; "kimi-k2" is tiktoken's), "llama" (SentencePiece BPE
// by scores) or "gemma4" (the same by merges). The result encodes like the Hugging Face tokenizer
// that the file was converted from. Where the file lacks information, it follows llama.cpp:
//
// - "llama": adds a space before the text and after each special token, unless
//   `add_space_prefix` is false.
// - End-of-generation tokens are those named in the metadata, plus those with well-known spellings
//   such as <|im_end|>.
#pragma once

#include "banyan/status.h"
#include "base/gguf.h"
#include "text/tokenizer/tokenizer_config.h"
#include "text/tokenizer/tokenizer_parts.h"

namespace banyan {

bool has_gguf_tokenizer(const GgufPairs& pairs);

// kUnsupported names an unknown tokenizer model or pre-tokenizer.
Result<TokenizerParts> read_gguf_tokenizer(const GgufPairs& pairs);

// Special tokens and the chat template.
Result<TokenizerConfig> read_gguf_tokenizer_config(const GgufPairs& pairs);

}  // namespace banyan
