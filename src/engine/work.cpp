#include "engine/work.h"

#include <algorithm>
#include <cmath>

#include "quant/formats.h"

namespace banyan {
namespace {

double& operations_of(Work& work, const std::string& format_name) {
  const WeightFormat* format = format_named(format_name);
  Operand operand = format == nullptr ? Operand::kF32 : format->operand;
  return work.operations[static_cast<size_t>(operand)];
}

// An output head has the size of an embedding, tied or not, and is summarised by itself.
bool is_head(const EngineInfo& info, const WeightSummary& w) {
  return w.matrices == 1 && w.share == 1 && w.parameters == info.vocabulary * info.hidden;
}

// Products of `rows` tokens with the weights, of which `head_rows` reach the output head.
void add_products(const EngineInfo& info, double rows, double head_rows, Work& work) {
  double counted = 0;
  for (const WeightSummary& w : info.weights) {
    double active = w.share * w.parameters;
    counted += active;
    operations_of(work, w.format) += 2 * active * (is_head(info, w) ? head_rows : rows);
  }
  // Vectors, and matrices that were derived while loading.
  double rest = std::max(0.0, info.parameters_active - counted);
  operations_of(work, info.state_format) += 2 * rest * rows;
}

// The share of attention that has a window; its layers are assumed to be alike.
double windowed_part(const EngineInfo& info) {
  double all = info.state_bytes_per_token;
  return all > 0 ? static_cast<double>(info.state_bytes_per_window_token) / all : 0;
}

// The share of attention that sees only chosen keys.
double selecting_part(const EngineInfo& info) {
  double all = info.attention_flops_per_key;
  return all > 0 ? static_cast<double>(info.selected_flops_per_key) / all : 0;
}

// The number of keys that a token with `context` tokens up to itself sees, averaged over the
// layers.
double keys_seen(const EngineInfo& info, double context) {
  double windowed = windowed_part(info), selecting = selecting_part(info);
  double window = std::min(context, static_cast<double>(info.window_tokens));
  double selected = std::min(context, static_cast<double>(info.selected_keys));
  return (1 - windowed - selecting) * context + windowed * window + selecting * selected;
}

// The number of positions that a token chooses among; 0 if it attends to all.
double keys_scored(const EngineInfo& info, double context) {
  return context > info.selected_keys ? context : 0;
}

void add_attention(const EngineInfo& info, int64_t flops_per_key, double keys, Work& work) {
  operations_of(work, info.state_format) += flops_per_key * keys;
}

void add_index(const EngineInfo& info, double keys, Work& work) {
  operations_of(work, "f32") += info.index_flops_per_key * keys;
}

// The weights that a step of `rows` tokens reads; of experts, those that any of the tokens is
// routed to.
double weight_bytes_read(const EngineInfo& info, double rows) {
  double bytes = info.weight_bytes_streamed;
  for (const WeightSummary& w : info.weights) {
    if (w.share >= 1) continue;
    bytes += w.bytes * (1 - w.share - std::pow(1 - w.share, rows));
  }
  return bytes;
}

}  // namespace

double Work::all_operations() const {
  double sum = 0;
  for (double count : operations) sum += count;
  return sum;
}

double Work::seconds(const std::array<double, kOperands>& operations_per_s) const {
  double sum = 0;
  for (size_t i = 0; i < operations.size(); ++i) sum += operations[i] / operations_per_s[i];
  return sum;
}

Work prompt_work(const EngineInfo& info, int64_t sequences, int64_t tokens) {
  auto prompts = static_cast<double>(sequences), length = static_cast<double>(tokens);
  Work work{.bytes = weight_bytes_read(info, prompts * length)};
  add_products(info, prompts * length, prompts, work);
  double keys = 0, scored = 0;
  if (info.state_bytes_per_window_token == 0 && info.selected_keys == 0) {
    keys = length * (length + 1) / 2;
  } else {
    for (int64_t position = 0; position < tokens; ++position) {
      keys += keys_seen(info, position + 1);
      scored += keys_scored(info, position + 1);
    }
  }
  int64_t flops = info.prompt_attention_flops_per_key;
  add_attention(info, flops > 0 ? flops : info.attention_flops_per_key, prompts * keys, work);
  add_index(info, prompts * scored, work);
  return work;
}

Work decode_work(const EngineInfo& info, int64_t sequences, double context) {
  double rows = sequences;
  // A recurrent state is read and written.
  double attended = info.state_bytes_per_token - info.index_bytes_per_token;
  double scored = keys_scored(info, context);
  double states = keys_seen(info, context) * attended + scored * info.index_bytes_per_key +
                  2 * info.state_bytes_per_sequence;
  Work work{.bytes = weight_bytes_read(info, rows) + rows * states};
  add_products(info, rows, rows, work);
  add_attention(info, info.attention_flops_per_key, rows * keys_seen(info, context), work);
  add_index(info, rows * scored, work);
  return work;
}

}  // namespace banyan
