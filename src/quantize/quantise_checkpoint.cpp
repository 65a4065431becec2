#include "quantize/quantise_checkpoint.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>

#include "base/check.h"
#include "base/divide.h"
#include "base/error.h"
#include "base/file.h"
#include "base/signed.h"
#include "kernels/select.h"
#include "models/load.h"
#include "weights/bare_source.h"
#include "weights/convert.h"
#include "weights/files/checkpoint_writer.h"

namespace banyan {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kSlabNumbers = 1 << 22;  // quantised at a time
constexpr size_t kCompanionBytesMax = 1 << 28;

// A matrix of the new checkpoint: one part of a matrix in memory.
struct Item {
  std::string name;
  int64_t rows = 0, columns = 0;
  MatrixForm form;
};

// A compressed-tensors scheme. `weights` is its description of the codes.
struct Scheme {
  std::string_view format;   // format in memory
  std::string_view written;  // name in the checkpoint: "pack-quantized"
  Json weights;
  Json activations;
};

// `group`: columns per scale, 0 for a whole row. fp8 uses its block size instead.
Scheme scheme_of(std::string_view format, int64_t group) {
  auto weights = [](int bits, const char* type, const char* strategy) {
    return Json{{"num_bits", bits},
                {"type", type},
                {"symmetric", true},
                {"strategy", strategy},
                {"dynamic", false}};
  };
  Scheme scheme{.format = format, .written = "", .weights = {}, .activations = nullptr};
  if (format == "int8") {
    scheme.written = "int-quantized";
    scheme.weights = weights(8, "int", group > 0 ? "group" : "channel");
    if (group > 0) scheme.weights["group_size"] = group;
    scheme.activations = weights(8, "int", "token");
    scheme.activations["dynamic"] = true;
  } else if (format == "int4") {
    scheme.written = "pack-quantized";
    scheme.weights = weights(4, "int", "group");
    scheme.weights["group_size"] = group;
  } else if (format == "fp8") {
    scheme.written = "float-quantized";
    scheme.weights = weights(8, "float", "block");
    scheme.weights["block_structure"] = {kFp8Block, kFp8Block};
  } else {
    CHECK(format == "mxfp4", "{}", format);
    scheme.written = "mxfp4-pack-quantized";
    scheme.weights = weights(4, "float", "group");
    scheme.weights["group_size"] = group;
    scheme.weights["scale_dtype"] = "torch.uint8";
  }
  return scheme;
}

// The tensors of `item` in the order in which write_item() writes their bytes.
std::vector<OutputTensor> tensors_of(const Item& item) {
  std::string_view format = item.form.format->name;
  int64_t n = item.rows, k = item.columns;
  if (!item.form.format->quantised) {
    return {{item.name + ".weight", item.form.format->element, {n, k}}};
  }
  if (format == "int8") {
    return {{item.name + ".weight", DType::kI8, {n, k}},
            {item.name + ".weight_scale", DType::kF32, {n, k / item.form.group}}};
  }
  if (format == "fp8") {
    return {{item.name + ".weight", DType::kF8E4M3, {n, k}},
            {item.name + ".weight_scale",
             DType::kF32,
             {divide_up(n, kFp8Block), divide_up(k, kFp8Block)}}};
  }
  if (format == "int4") {
    return {{item.name + ".weight_packed", DType::kI32, {n, k / 8}},
            {item.name + ".weight_scale", DType::kBF16, {n, k / item.form.group}},
            {item.name + ".weight_shape", DType::kI64, {2}}};
  }
  return {{item.name + ".weight_packed", DType::kU8, {n, k / 2}},
          {item.name + ".weight_scale", DType::kU8, {n, k / 32}}};
}

// The scales of all rows as bytes, in the storage that tensors_of() declares.
std::vector<std::byte> scale_bytes(const Item& item, const std::vector<float>& scales) {
  int64_t groups = item.columns / item.form.group;
  std::vector<float> kept = scales;
  DType dtype = tensors_of(item)[1].dtype;
  if (item.form.format->name == "fp8") {  // one scale per block
    kept.clear();
    for (int64_t r = 0; r < item.rows; r += kFp8Block) {
      for (int64_t c = 0; c < item.columns; c += kFp8Block) {
        kept.push_back(scales[r * groups + c / item.form.group]);
      }
    }
  }
  std::vector<std::byte> bytes(kept.size() * dtype_bytes(dtype));
  if (dtype != DType::kU8) {
    convert_elements(kept.data(), DType::kF32, bytes.data(), dtype, std::ssize(kept));
    return bytes;
  }
  for (size_t i = 0; i < kept.size(); ++i) {  // e8m0
    int exponent = kept[i] == 0x1p-127f ? -127 : std::ilogb(kept[i]);
    bytes[i] = static_cast<std::byte>(exponent + 127);
  }
  return bytes;
}

// Packs two 4-bit codes into a byte, low nibble first; little-endian words have the same bytes.
void pack_nibbles(std::vector<uint8_t>& codes) {
  for (size_t i = 0; i < codes.size() / 2; ++i) {
    codes[i] = static_cast<uint8_t>(codes[2 * i] | codes[2 * i + 1] << 4);
  }
  codes.resize(codes.size() / 2);
}

class Job {
 public:
  explicit Job(const QuantiseOptions& options) : options_(options) {}

  Result<QuantiseResult> run() {
    TRY(check_out());
    LoadedModel model = TRY(plan());
    source_.emplace(TRY(Checkpoint::open(options_.folder)));
    if (BareSource::fits(*source_)) {
      return unsupported(
          "{}: a checkpoint saved without its output head cannot be rewritten; load it with "
          "--quantization instead",
          options_.folder);
    }
    list_items(model);
    TRY(check_items());
    temporary_ = options_.out;
    while (temporary_.ends_with('/')) temporary_.pop_back();
    temporary_ += ".partial.XXXXXX";
    if (mkdtemp(temporary_.data()) == nullptr) {
      return io_error("{}: {}", temporary_, std::strerror(errno));
    }
    Result<QuantiseResult> result = write_all();
    std::error_code code;
    if (result) {
      fs::permissions(temporary_, fs::perms(0755), code);
      fs::rename(temporary_, options_.out, code);  // also replaces an empty folder
      if (!code) return result;
      result = io_error("{}: {}", options_.out, code.message());
    }
    fs::remove_all(temporary_, code);
    return result;
  }

 private:
  Status check_out() const {
    std::error_code code;
    if (options_.out.empty()) return invalid_argument("no folder to write to");
    if (!fs::exists(options_.out, code)) return {};
    if (!fs::is_directory(options_.out, code)) {
      return invalid_argument("{} exists and is not a folder", options_.out);
    }
    if (fs::is_empty(options_.out, code) && !code) return {};
    return invalid_argument("{} is not empty; choose a new or an empty folder", options_.out);
  }

  Result<LoadedModel> plan() {
    config_ = TRY(parse_json(TRY(read_file(options_.folder + "/config.json")), "config.json"));
    for (const char* key : {"quantization_config", "compression_config"}) {
      if (config_.contains(key) && !config_[key].is_null()) {
        return unsupported("{}: config.json has a {}: give the checkpoint that it was made from",
                           options_.folder, key);
      }
    }
    EngineConfig config{.model_path = options_.folder,
                        .quantization = options_.format,
                        .quantization_overrides = options_.overrides};
    return load_model(
        config,
        {.kernels = TRY(select_kernels("portable")), .threads = options_.threads, .dry = true});
  }

  // Selects the matrices whose format differs from the file's for quantization; copies all other
  // tensors.
  void list_items(const LoadedModel& model) {
    for (const MatrixRecord& record : model.matrices) {
      for (const MatrixRecord::Part& part : record.parts) {
        if (!record.form().format->quantised) left_.push_back(part.name);
        if (part.stored == record.form().format->name) continue;
        items_.emplace(part.name + ".weight",
                       Item{part.name, part.rows, record.matrix.columns, record.form()});
      }
    }
  }

  // A part of a larger tensor cannot be written separately.
  Status check_items() const {
    for (const auto& [name, item] : items_) {
      if (source_->find(name) != nullptr) continue;
      return unsupported(
          "{}: {} is part of a stacked tensor of all experts, which cannot be rewritten; load the "
          "checkpoint with --quantization instead",
          options_.folder, name);
    }
    return {};
  }

  Result<QuantiseResult> write_all() {
    std::vector<OutputTensor> outputs;
    QuantiseResult result;
    for (const TensorInfo* tensor : source_->tensors()) {
      result.bytes_read += std::ssize(tensor->bytes);
      auto item = items_.find(tensor->name);
      if (item == items_.end()) {
        outputs.push_back({tensor->name, tensor->dtype, tensor->shape});
      } else {
        for (OutputTensor& t : tensors_of(item->second)) outputs.push_back(std::move(t));
      }
    }
    CheckpointWriter writer(temporary_, std::move(outputs), options_.shard_bytes_max);
    result.bytes_written = writer.bytes_total();
    int64_t done = 0;
    for (const TensorInfo* tensor : source_->tensors()) {
      auto item = items_.find(tensor->name);
      TRY(item == items_.end() ? copy(*tensor, writer) : write_item(item->second, writer));
      done += std::ssize(tensor->bytes);
      if (options_.progress) options_.progress(done, result.bytes_read);
    }
    TRY(writer.finish());
    TRY(write_config());
    TRY(copy_companions());
    return result;
  }

  Status copy(const TensorInfo& tensor, CheckpointWriter& writer) {
    constexpr size_t kCopyBytes = 8 << 20;
    std::vector<std::byte> buffer(std::min(kCopyBytes, tensor.bytes.size()));
    for (size_t at = 0; at < tensor.bytes.size(); at += kCopyBytes) {
      std::span<std::byte> some =
          std::span(buffer).first(std::min(kCopyBytes, tensor.bytes.size() - at));
      TRY(source_->read(tensor, at, some));
      TRY(writer.write(some));
    }
    return {};
  }

  Status write_item(const Item& item, CheckpointWriter& writer) {
    MatrixSource part{.name = item.name, .rows = item.rows};
    part.stored = TRY(StoredMatrix::find(*source_, {}, item.name, item.rows, item.columns));
    const WeightFormat& format = *item.form.format;
    int64_t slab = std::clamp<int64_t>(kSlabNumbers / item.columns, 1, item.rows);
    slab = divide_up(slab, format.quantise_rows) * format.quantise_rows;
    int64_t groups = item.columns / item.form.group;
    std::vector<float> scales(as_size(item.rows * groups));
    bool nibbles = format.name == "int4" || format.name == "mxfp4";
    for (int64_t row = 0; row < item.rows; row += slab) {
      int64_t end = std::min(item.rows, row + slab);
      std::vector<uint8_t> bytes(as_size((end - row) * item.columns) * dtype_bytes(format.element));
      TRY(make_rows(part, item, row, end, bytes.data(), scales.data()));
      if (nibbles) pack_nibbles(bytes);
      TRY(writer.write(std::as_bytes(std::span(bytes))));
    }
    if (format.quantised) TRY(writer.write(scale_bytes(item, scales)));
    if (format.name != "int4") return {};
    int64_t shape[2] = {item.rows, item.columns};
    return writer.write(std::as_bytes(std::span(shape)));
  }

  // Quantises or copies rows [begin, end): codes or elements go to `bytes`, scales to `scales`.
  Status make_rows(const MatrixSource& part, const Item& item, int64_t begin, int64_t end,
                   uint8_t* bytes, float* scales) {
    const WeightFormat& format = *item.form.format;
    int64_t groups = item.columns / item.form.group;
    std::mutex mutex;
    Status status;
    options_.threads->parallel_for(end - begin, format.quantise_rows, [&](int64_t b, int64_t e) {
      std::vector<float> rows(as_size((e - b) * item.columns));
      uint8_t* to = bytes + b * item.columns * dtype_bytes(format.element);
      Status made;
      if (format.quantised) {
        made = make_codes(part, item.form, item.columns, begin + b, begin + e, rows,
                          {to, scales + (begin + b) * groups});
      } else {
        made = part.stored->read_floats(begin + b, begin + e, rows.data());
        convert_elements(rows.data(), DType::kF32, to, format.element, (e - b) * item.columns);
      }
      std::lock_guard lock(mutex);
      if (!made) status = made;
    });
    return status;
  }

  // One config group per kind of codes, listing modules by name, so that no class names are needed.
  Json quantization_config() const {
    std::map<std::pair<std::string_view, int64_t>, std::vector<std::string>> kinds;
    for (const auto& [tensor, item] : items_) {
      const MatrixForm& form = item.form;
      if (!form.format->quantised) continue;
      bool whole = form.group == item.columns || form.format->name == "fp8";
      kinds[{form.format->name, whole ? 0 : form.group}].push_back(item.name);
    }
    Json groups = Json::object();
    std::set<std::string_view> written;
    for (const auto& [kind, modules] : kinds) {
      Scheme scheme = scheme_of(kind.first, kind.second);
      written.insert(scheme.written);
      groups[fmt::format("group_{}", groups.size())] = {{"targets", modules},
                                                        {"weights", scheme.weights},
                                                        {"input_activations", scheme.activations},
                                                        {"output_activations", nullptr},
                                                        {"format", scheme.written}};
    }
    std::string_view format = written.empty() ? "dense" : *written.begin();
    if (written.size() > 1) format = "mixed-precision";
    return {{"quant_method", "compressed-tensors"},
            {"format", format},
            {"quantization_status", "compressed"},
            {"config_groups", std::move(groups)},
            {"ignore", left_},
            {"kv_cache_scheme", nullptr}};
  }

  Status write_config() {
    config_["quantization_config"] = quantization_config();
    return write_file(temporary_ + "/config.json", config_.dump(2) + "\n");
  }

  // Copies the tokenizer and all other files next to the weights.
  Status copy_companions() const {
    std::error_code code;
    for (fs::directory_iterator it(options_.folder, code), end; !code && it != end;
         it.increment(code)) {
      std::string name = it->path().filename().string();
      std::string suffix = it->path().extension().string();
      static const std::set<std::string> kWeights = {".safetensors", ".bin",  ".pt", ".pth",
                                                     ".gguf",        ".onnx", ".h5", ".msgpack"};
      if (!it->is_regular_file() || name == "config.json" || name.starts_with('.') ||
          kWeights.contains(suffix) || name.ends_with(".index.json")) {
        continue;
      }
      TRY(write_file(temporary_ + "/" + name,
                     TRY(read_file(it->path().string(), kCompanionBytesMax))));
    }
    if (code) return io_error("{}: {}", options_.folder, code.message());
    return {};
  }

  const QuantiseOptions& options_;
  Json config_;
  std::optional<Checkpoint> source_;
  std::map<std::string, Item> items_;  // by the name of the tensor that they replace
  std::vector<std::string> left_;      // matrices that are not quantised
  std::string temporary_;
};

}  // namespace

Result<QuantiseResult> quantise_checkpoint(const QuantiseOptions& options) {
  return guard([&] { return Job(options).run(); });
}

}  // namespace banyan
