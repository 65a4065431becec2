// The tokenizer in a GGUF file's metadata: `tokenizer.ggml.model` is "gpt2", byte-level BPE whose
// `tokenizer.ggml.pre` names how texts are cut ("kimi-k2" is tiktoken's), or "llama",
// SentencePiece's BPE by scores. What comes of it encodes as the Hugging Face tokenizer that the
// file was made from; where a file does not say what that one did, this does what llama.cpp does:
//
// - "llama": a space goes in front of a text and after each special token, unless
//   `add_space_prefix` is false.
// - Tokens that end a generation are those that the metadata names, and the ones with well-known
//   spellings, such as <|im_end|>.
#pragma once

#include "banyan/status.h"
#include "base/gguf.h"
#include "text/tokenizer/tokenizer_config.h"
#include "text/tokenizer/tokenizer_parts.h"

namespace banyan {

bool has_gguf_tokenizer(const GgufPairs& pairs);

// kUnsupported: a kind of tokenizer, or a way to cut texts, that is not known, by its name.
Result<TokenizerParts> read_gguf_tokenizer(const GgufPairs& pairs);

// Special tokens and the chat template.
Result<TokenizerConfig> read_gguf_tokenizer_config(const GgufPairs& pairs);

}  // namespace banyan
