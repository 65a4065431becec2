// Embeddings of texts, for every protocol. Their endpoints read a list of prompts and write a list
// of vectors; how the model pools is Llm::pooling(). Planning runs on a worker.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "server/fields/prompts.h"
#include "server/fields/request.h"
#include "server/generation.h"
#include "server/json/writer.h"

namespace banyan {

struct EmbeddingOptions {
  int64_t dimensions = 0;  // only the first N values; 0: all
  bool normalise = true;   // divide by the length
};

// `dimensions`, which the model must have.
int64_t read_dimensions(RequestFields& fields, const Llm& llm);

// Texts and ids, ready to be embedded. `options` has the adapter and the scheduling.
std::vector<TextRequest> texts_of(std::vector<GivenPrompt> prompts,
                                  const GenerationOptions& options, bool add_special_tokens = true);

// Cuts a text that has more than `tokens_max` tokens. If the last token is special, it stays the
// last, since its state is what many models pool.
Status truncate(const Llm& llm, int64_t tokens_max, TextRequest& text);
// The most tokens that a prompt may have.
int64_t prompt_tokens_max(const Llm& llm);
// GenerationPlan::window for what may be thousands of short prompts.
size_t prompts_window(const Llm& llm);

// Writes one embedding as JSON text, as soon as it is there; returns the body of the answer. Both
// on the I/O thread.
using WriteEmbedding = std::string (*)(std::span<const float> embedding);
using WriteEmbeddings = std::function<std::string(std::span<const Choice> choices,
                                                  std::span<const std::string> embeddings)>;

Parsed<GenerationPlan> plan_embeddings(const RequestContext& context,
                                       std::vector<TextRequest> texts,
                                       const EmbeddingOptions& options, WriteEmbedding write_one,
                                       WriteEmbeddings write);
// The same for an answer that takes the vectors themselves, whole and normalised.
using UseEmbeddings = std::function<std::string(std::span<const Choice> choices,
                                                std::span<const std::vector<float>> embeddings)>;
Parsed<GenerationPlan> plan_vectors(const RequestContext& context, std::vector<TextRequest> texts,
                                    UseEmbeddings use);

// A list of numbers, with the digits that an f32 needs.
std::string list_of(std::span<const float> values);
// "usage" of an answer without output.
void write_prompt_usage(JsonWriter& writer, std::span<const Choice> choices);

}  // namespace banyan
