// How a model pools the hidden states of a text. What is done with them then is in banyan/llm.h.
#pragma once

#include "banyan/config.h"
#include "banyan/llm.h"
#include "banyan/request.h"
#include "banyan/status.h"

namespace banyan {

// What a model's publisher says about embeddings: in the files of sentence-transformers in its
// folder (modules.json and the folder of its pooling module), or in a GGUF file's pooling_type.
struct EmbeddingConfig {
  // The last token if nothing is said. kUnsupported names a module or a kind of pooling that is not
  // there, kCorrupt a damaged file.
  Result<Pooling> pooling = Pooling::kLast;
  bool intended = false;  // the model is made for embeddings
};
// EngineConfig::pooling and embedding_model take precedence.
EmbeddingConfig read_embedding_config(const EngineConfig& config);

}  // namespace banyan
