// StoredMatrix::find(): determines how a matrix is stored from its tensors.
#include <algorithm>
#include <array>
#include <cstring>
#include <initializer_list>

#include "base/divide.h"
#include "base/error.h"
#include "base/signed.h"
#include "weights/convert.h"
#include "weights/shape_text.h"
#include "weights/stored_matrix.h"

namespace banyan {
namespace {

// Scales that are one byte of exponent.
bool is_exponent(DType dtype) {
  return dtype == DType::kU8 || dtype == DType::kF8E8M0;
}

// Tensors of a quantised matrix that give static activation scales; we quantise activations
// dynamically.
constexpr std::array<std::string_view, 3> kActivationTensors = {"input_scale", "input_zero_point",
                                                                "input_global_scale"};

}  // namespace

class StoredFinder {
 public:
  StoredFinder(const WeightSource& source, const QuantConfig& config, const std::string& name,
               int64_t rows, int64_t columns)
      : source_(source), config_(config), name_(name), rows_(rows), columns_(columns) {
    m_.source_ = &source;
    m_.name_ = name;
    m_.rows_ = rows;
    m_.columns_ = columns;
  }

  Result<StoredMatrix> find() {
    TRY(find_codes());
    for (std::string_view leaf : kActivationTensors) {
      if (m_.layout_ != CodeLayout::kElements) tensor(leaf);
    }
    m_.choose_format();
    return std::move(m_);
  }

 private:
  Status find_codes() {
    if (const TensorInfo* packed = tensor("weight_packed")) return find_packed(packed);
    if (const TensorInfo* words = tensor("qweight")) return find_words(words);
    const TensorInfo* weight = tensor("weight");
    if (weight == nullptr) {
      return not_found("{}.weight {} is missing", name_, shape_text({{rows_, columns_}}));
    }
    m_.codes_ = weight;
    if (weight->blocks != BlockFormat::kNone) {
      m_.layout_ = CodeLayout::kBlocks;
      return expect(weight, {rows_, columns_}, {DType::kU8});
    }
    switch (weight->dtype) {
      case DType::kF8E4M3:
      case DType::kI8:
        return find_bytes(weight);
      case DType::kU8:
        return find_nibbles(weight, {"weight_scale", "weight_scale_inv"}, "weight_scale_2");
      default:
        return expect(weight, {rows_, columns_}, {DType::kF32, DType::kBF16, DType::kF16});
    }
  }

  // A tensor of this matrix, which is then recorded; null if there is none.
  const TensorInfo* tensor(std::string_view leaf) {
    const TensorInfo* found = source_.find(fmt::format("{}.{}", name_, leaf));
    if (found != nullptr) m_.tensors_.push_back(found);
    return found;
  }

  Result<const TensorInfo*> demand(std::initializer_list<std::string_view> leaves) {
    for (std::string_view leaf : leaves) {
      if (const TensorInfo* found = tensor(leaf)) return found;
    }
    return not_found("{}.{} is missing", name_, *leaves.begin());
  }

  static Status expect(const TensorInfo* t, std::initializer_list<int64_t> shape,
                       std::initializer_list<DType> dtypes) {
    if (!std::ranges::equal(t->shape, shape)) {
      return corrupt("{} has shape {} where {} is expected", t->name, shape_text(t->shape),
                     shape_text(std::vector<int64_t>(shape)));
    }
    return expect_dtype(t, dtypes);
  }

  static Status expect_dtype(const TensorInfo* t, std::initializer_list<DType> dtypes) {
    if (std::ranges::find(dtypes, t->dtype) != dtypes.end()) return {};
    std::string names;
    for (const DType* d = dtypes.begin(); d != dtypes.end(); ++d) {
      names += d == dtypes.begin() ? "" : d + 1 == dtypes.end() ? " or " : ", ";
      names += dtype_name(*d);
    }
    return corrupt("{} has dtype {} where {} is expected", t->name, dtype_name(t->dtype), names);
  }

  // Scales per matrix, row, group of a row, or block; determined by their shape.
  Status set_scales(const TensorInfo* t) {
    const std::vector<int64_t>& shape = t->shape;
    auto grid = [&](int64_t rows, int64_t columns, int64_t row_block, int64_t column_block) {
      m_.scales_ = {t, rows, columns, row_block, column_block};
      return Status();
    };
    if (shape.empty() || std::ranges::equal(shape, std::array<int64_t, 1>{1})) {
      return grid(1, 1, rows_, columns_);
    }
    if (shape.size() == 1 && shape[0] == rows_) return grid(rows_, 1, 1, columns_);
    if (shape.size() == 2) {
      for (const QuantBlock& block : config_.blocks) {
        if (shape[0] == divide_up(rows_, block.rows) &&
            shape[1] == divide_up(columns_, block.columns)) {
          return grid(shape[0], shape[1], block.rows, block.columns);
        }
      }
      if (shape[0] == 1 && shape[1] == 1) return grid(1, 1, rows_, columns_);
      if (shape[0] == rows_ && shape[1] > 0 && columns_ % shape[1] == 0) {
        return grid(rows_, shape[1], 1, columns_ / shape[1]);
      }
    }
    std::string blocks;
    for (const QuantBlock& block : config_.blocks) {
      blocks += fmt::format(", or one for each block of {} x {}", block.rows, block.columns);
    }
    return corrupt(
        "{} has shape {}: neither one scale, nor one for each of {} rows or group of "
        "its {} columns{}",
        t->name, shape_text(shape), rows_, columns_, blocks);
  }

  // fp8 and int8 stored directly.
  Status find_bytes(const TensorInfo* weight) {
    m_.layout_ = CodeLayout::kBytes;
    m_.type_ = weight->dtype == DType::kI8 ? CodeType::kInt8 : CodeType::kE4m3;
    TRY(expect(weight, {rows_, columns_}, {weight->dtype}));
    const TensorInfo* scales = TRY(demand({"weight_scale", "weight_scale_inv"}));
    TRY(expect_dtype(scales, {DType::kF32, DType::kBF16, DType::kF16, DType::kF8E8M0, DType::kU8}));
    TRY(set_scales(scales));
    if (const TensorInfo* zeros = tensor("weight_zero_point")) {
      if (weight->dtype != DType::kI8) {
        return unsupported("{}: zero points of fp8 are not supported", zeros->name);
      }
      TRY(expect_dtype(zeros, {DType::kI8}));
      if (zeros->shape != scales->shape) {
        return corrupt("{} has shape {} where that of the scales, {}, is expected", zeros->name,
                       shape_text(zeros->shape), shape_text(scales->shape));
      }
      m_.zeros_ = zeros;
    }
    return {};
  }

  Status find_packed(const TensorInfo* packed) {
    if (packed->dtype == DType::kU8) {
      return find_nibbles(packed, {"weight_scale"}, "weight_global_scale");
    }
    m_.codes_ = packed;
    TRY(expect_dtype(packed, {DType::kI32}));
    TRY(check_stated_shape());
    auto words = [&](int64_t bits) { return divide_up(columns_ * bits, 32); };
    bool eight = packed->shape.size() == 2 && packed->shape[1] == words(8);
    TRY(expect(packed, {rows_, words(eight ? 8 : 4)}, {DType::kI32}));
    m_.layout_ = eight ? CodeLayout::kBytes : CodeLayout::kNibbles;
    m_.type_ = eight ? CodeType::kUint8 : CodeType::kUint4;
    const TensorInfo* scales = TRY(demand({"weight_scale"}));
    TRY(expect_dtype(scales, {DType::kF32, DType::kBF16, DType::kF16}));
    const TensorInfo* index = tensor("weight_g_idx");
    TRY(set_scales(scales));
    if (const TensorInfo* zeros = tensor("weight_zero_point")) {
      int64_t per_word = eight ? 4 : 8;
      if (m_.scales_.row_block != 1) {
        return unsupported("{}: zero points without a scale for each row are not supported",
                           zeros->name);
      }
      TRY(expect(zeros, {divide_up(rows_, per_word), m_.scales_.columns}, {DType::kI32}));
      m_.zeros_ = zeros;
    }
    return index == nullptr ? Status() : read_column_groups(index);
  }

  // `weight_shape` gives the sizes that padded words hide.
  Status check_stated_shape() {
    const TensorInfo* stated = tensor("weight_shape");
    if (stated == nullptr) return {};
    TRY(expect(stated, {2}, {DType::kI64, DType::kI32}));
    int64_t shape[2] = {};
    if (stated->dtype == DType::kI64) {
      TRY(source_.read(*stated, 0, std::as_writable_bytes(std::span(shape))));
    } else {
      int32_t narrow[2];
      TRY(source_.read(*stated, 0, std::as_writable_bytes(std::span(narrow))));
      shape[0] = narrow[0];
      shape[1] = narrow[1];
    }
    if (shape[0] == rows_ && shape[1] == columns_) return {};
    return corrupt("{} says {} where {} is expected", stated->name, shape_text(shape),
                   shape_text({{rows_, columns_}}));
  }

  // mxfp4 if the scales are exponents; nvfp4 if they are fp8 with a global scale.
  Status find_nibbles(const TensorInfo* packed, std::initializer_list<std::string_view> scale_names,
                      std::string_view global_name) {
    m_.codes_ = packed;
    m_.layout_ = CodeLayout::kNibbles;
    m_.type_ = CodeType::kE2m1;
    TRY(expect(packed, {rows_, divide_up(columns_, 2)}, {DType::kU8}));
    const TensorInfo* scales = TRY(demand(scale_names));
    TRY(expect_dtype(scales, {DType::kF8E4M3, DType::kU8, DType::kF8E8M0}));
    int64_t group = is_exponent(scales->dtype) ? 32 : 16;
    TRY(expect(scales, {rows_, divide_up(columns_, group)}, {scales->dtype}));
    m_.scales_ = {scales, rows_, divide_up(columns_, group), 1, group};
    if (is_exponent(scales->dtype)) return {};
    m_.global_ = TRY(demand({global_name}));
    m_.divide_by_global_ = global_name == "weight_global_scale";
    if (m_.global_->shape.size() > 1 || m_.global_->bytes.size() != sizeof(float)) {
      return corrupt("{} has shape {} where one number is expected", m_.global_->name,
                     shape_text(m_.global_->shape));
    }
    return expect_dtype(m_.global_, {DType::kF32});
  }

  Status find_words(const TensorInfo* words) {
    m_.codes_ = words;
    bool awq = config_.method == QuantMethod::kAwq;
    if (!awq && config_.method != QuantMethod::kGptq) {
      return corrupt("{} is there, but quant_method is {}, neither awq nor gptq", words->name,
                     config_.name);
    }
    int64_t per_word = 32 / config_.bits;
    int64_t group = config_.group == 0 ? columns_ : config_.group;
    int64_t groups = divide_up(columns_, group);
    if (rows_ % per_word != 0 || (!awq && columns_ % per_word != 0)) {
      return corrupt("{}: [{}, {}] does not fill words of {} numbers", words->name, rows_, columns_,
                     per_word);
    }
    m_.layout_ = awq ? CodeLayout::kAwqWords : CodeLayout::kGptqWords;
    m_.type_ = config_.bits == 4 ? CodeType::kUint4 : CodeType::kUint8;
    if (awq) TRY(expect(words, {columns_, rows_ / per_word}, {DType::kI32}));
    if (!awq) TRY(expect(words, {columns_ / per_word, rows_}, {DType::kI32}));
    const TensorInfo* scales = TRY(demand({"scales"}));
    TRY(expect(scales, {groups, rows_}, {scales->dtype}));
    TRY(expect_dtype(scales, {DType::kF16, DType::kBF16, DType::kF32}));
    m_.scales_ = {scales, rows_, groups, 1, group, true};
    const TensorInfo* zeros = tensor("qzeros");
    if (zeros == nullptr && (awq ? config_.zero_points : !config_.symmetric)) {
      return not_found("{}.qzeros is missing", name_);
    }
    if (zeros != nullptr) TRY(expect(zeros, {groups, rows_ / per_word}, {DType::kI32}));
    m_.zeros_ = zeros;
    m_.check_zeros_ = !awq && config_.symmetric;
    m_.zero_add_ = !awq && config_.zeros_less_one ? 1 : 0;
    const TensorInfo* index = awq ? nullptr : tensor("g_idx");
    return index == nullptr ? Status() : read_column_groups(index);
  }

  // Reads the group of every column; kept only if groups are out of order.
  Status read_column_groups(const TensorInfo* index) {
    TRY(expect(index, {columns_}, {DType::kI32}));
    std::vector<int32_t> groups(as_size(columns_));
    TRY(source_.read(*index, 0, std::as_writable_bytes(std::span(groups))));
    bool in_order = true;
    for (int64_t c = 0; c < columns_; ++c) {
      if (groups[c] < 0 || groups[c] >= m_.scales_.columns) {
        return corrupt("{}: column {} is in group {} of {}", index->name, c, groups[c],
                       m_.scales_.columns);
      }
      in_order = in_order && groups[c] == c / m_.scales_.column_block;
    }
    if (!in_order) m_.column_groups_ = std::move(groups);
    return {};
  }

  const WeightSource& source_;
  const QuantConfig& config_;
  std::string name_;
  int64_t rows_, columns_;
  StoredMatrix m_;
};

Result<StoredMatrix> StoredMatrix::find(const WeightSource& source, const QuantConfig& config,
                                        const std::string& name, int64_t rows, int64_t columns) {
  return StoredFinder(source, config, name, rows, columns).find();
}

}  // namespace banyan
