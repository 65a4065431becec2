// How the hidden states of a text become its embedding.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

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

// What the engine runs for the embedding of `text`.
TextRequest embedding_request(TextRequest text, Pooling pooling);

// 0 stands for all `hidden` values of an embedding. kInvalidArgument: out of range.
Status check_dimensions(int64_t dimensions, int64_t hidden);

// The first `dimensions` values (0: all), divided by their length unless they are all zero.
std::vector<float> normalised(std::span<const float> embedding, int64_t dimensions);

}  // namespace banyan
