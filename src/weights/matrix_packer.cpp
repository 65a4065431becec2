#include "weights/matrix_packer.h"

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <numeric>

#include "base/check.h"
#include "base/divide.h"
#include "base/error.h"
#include "base/signed.h"
#include "weights/convert.h"
#include "weights/random_weights.h"

namespace banyan {
namespace {

// Elements that a worker packs at a time. They stay in its cache, and an expert of a million has
// some for every worker.
constexpr int64_t kPackNumbers = 1 << 15;

const WeightFormat* wider(const WeightFormat* a, const WeightFormat* b) {
  if (a == nullptr || a == b) return b;
  return b == nullptr ? a : format_of(DType::kF32);
}

// The format that represents both `a` and `b`; null if there is none.
const WeightFormat* common_format(const WeightFormat* a, const WeightFormat* b) {
  if (a == b) return a;
  auto four_bits = [](const WeightFormat* f) { return f->name == "int4" || f->name == "uint4"; };
  return four_bits(a) && four_bits(b) ? format_named("uint4") : nullptr;
}

// The form that keeps the codes of all parts, if one format fits them all.
std::optional<MatrixForm> exact_form(std::span<const MatrixSource> parts, int64_t columns) {
  MatrixForm form;
  for (const MatrixSource& part : parts) {
    if (!part.stored || part.stored->is_plain() || part.stored->format().empty()) return {};
    const WeightFormat* format = format_named(part.stored->format());
    CHECK(format != nullptr, "{}", part.stored->format());
    form.format = form.format == nullptr ? format : common_format(form.format, format);
    if (form.format == nullptr) return {};
    int64_t group = part.stored->group();
    if (form.group == 0) form.group = group;
    if (format->blocks != nullptr && form.group != group) return {};  // levels cannot be split
    form.group = std::gcd(form.group, group);
  }
  constexpr int64_t kGroupMultiple = 32;
  if (form.group != columns && form.group % kGroupMultiple != 0) return {};
  return form;
}

// The e4m3 codes of the integers 0 to 15, and of e2m1's values (whose sign moves from bit 3 to 7).
constexpr uint8_t kFp8OfInteger[16] = {0x00, 0x38, 0x40, 0x44, 0x48, 0x4a, 0x4c, 0x4e,
                                       0x50, 0x51, 0x52, 0x53, 0x54, 0x55, 0x56, 0x57};
constexpr uint8_t kFp8OfE2m1[8] = {0x00, 0x30, 0x38, 0x3c, 0x40, 0x44, 0x48, 0x4c};

uint8_t fp8_of(std::string_view format, uint8_t code, uint8_t zero) {
  if (format == "mxfp4") {
    return static_cast<uint8_t>(kFp8OfE2m1[code & 7] | ((code & 8) != 0 ? 0x80 : 0));
  }
  int value = int{code} - (format == "int4" ? 8 : int{zero});
  return static_cast<uint8_t>(kFp8OfInteger[std::abs(value)] | (value < 0 ? 0x80 : 0));
}

// Converts 4-bit codes, and their zero points, to the fp8 codes of the same values.
void recode_as_fp8(std::string_view format, const RowsShape& shape, const QuantisedRows& rows) {
  for (int64_t g = 0; g < shape.rows * shape.groups(); ++g) {
    uint8_t* codes = rows.codes + g * shape.group;
    for (int64_t i = 0; i < shape.group; ++i) codes[i] = fp8_of(format, codes[i], rows.zeros[g]);
  }
}

// Whether `part` is recoded to fp8.
bool becomes_fp8(const MatrixSource& part, const WeightFormat& to) {
  const WeightFormat* stored = format_named(part.stored->format());
  return part.choice.weight_only && to.name == "fp8" && stored->element == DType::kU8 &&
         stored->blocks == nullptr;
}

MatrixForm weight_only_form(const MatrixForm& form, int64_t columns, DType element) {
  if (form.format->operand != Operand::kInt8) return form;
  bool fits_fp8 = form.format->element == DType::kU8 && form.format->blocks == nullptr;
  if (!fits_fp8) return {format_of(element), columns};
  return {format_named("fp8"), form.group};
}

Result<QuantizationPlan::Choice> common_choice(std::span<const MatrixSource> parts) {
  QuantizationPlan::Choice choice = parts[0].choice;
  for (const MatrixSource& part : parts) {
    if (part.choice == choice) continue;
    auto name = [](const QuantizationPlan::Choice& c) {
      std::string_view stored = c.weight_only ? "weight-only" : "as stored";
      std::string text(c.format == nullptr ? stored : c.format->name);
      return c.group == 0 ? text : fmt::format("{}:{}", text, c.group);
    };
    return invalid_argument(
        "{} would be {} and {} would be {}, but they share one matrix in memory: make the "
        "quantization overrides match both or neither",
        parts[0].name, name(choice), part.name, name(part.choice));
  }
  return choice;
}

MatrixForm quantised_form(std::span<const MatrixSource> parts,
                          const QuantizationPlan::Choice& choice, int64_t columns) {
  const WeightFormat* format = choice.format;
  if (!format->quantised) return {format, columns};
  std::optional<MatrixForm> exact = exact_form(parts, columns);
  int64_t group = quantise_group(*format, columns, choice.group);
  bool as_wanted = choice.group == 0 || (exact && exact->group == group);
  if (exact && exact->format == format && as_wanted) return *exact;
  return group > 0 ? MatrixForm{format, group} : MatrixForm{format_named("int8"), columns};
}

Status read_rows(const MatrixSource& part, int64_t columns, int64_t begin, int64_t end, float* to) {
  if (part.stored) return part.stored->read_floats(begin, end, to);
  random_elements(part.name, begin * columns, (end - begin) * columns, 0, to);
  return {};
}

Status check_finite(const MatrixSource& part, const float* x, int64_t count) {
  float poison = 0;
  for (int64_t i = 0; i < count; ++i) poison += x[i] * 0.0f;
  if (poison == 0) return {};
  return corrupt("{}.weight contains NaN or infinity and cannot be quantised", part.name);
}

// From rows of `stride` items, keeps the rows from `lead` on, and in each the `count` items from
// `begin`.
template <class T>
void cut_rows(std::vector<T>& items, int64_t lead, int64_t rows, int64_t stride, int64_t begin,
              int64_t count) {
  if (lead == 0 && count == stride) return;
  for (int64_t r = 0; r < rows; ++r) {
    T* from = items.data() + (lead + r) * stride + begin;
    std::copy(from, from + count, items.data() + r * count);
  }
}

// One worker's buffer of rows being packed.
class RowPacker {
 public:
  RowPacker(const MatrixSource& part, const PackedMatrix& matrix, int64_t row_begin,
            const ColumnCut& cut, const GemmKernel& kernel)
      : part_(part), matrix_(matrix), row_begin_(row_begin), cut_(cut), kernel_(kernel) {}

  Status pack(int64_t begin, int64_t end) {
    // Rows that share scales are quantised together, even if this rank takes only some of them.
    int64_t grain = matrix_.format->quantise_rows;
    int64_t first = part_.first_row + begin, lead = first % grain;
    int64_t last = std::min(part_.whole_rows, divide_up(part_.first_row + end, grain) * grain);
    PackArgs args{.packed = matrix_.data,
                  .n = matrix_.rows,
                  .k = matrix_.columns,
                  .group = matrix_.group,
                  .row_begin = row_begin_ + begin,
                  .row_count = end - begin};
    TRY(read(first - lead, last));
    int64_t element = dtype_bytes(matrix_.format->element);
    cut_rows(bytes_, lead, end - begin, cut_.whole * element, cut_.begin * element,
             cut_.count * element);
    args.source = bytes_.data();
    if (matrix_.format->quantised) {
      cut_scales(lead, end - begin);
      args.scales = scales_.data();
      args.zeros = zeros_.data();
      args.mins = mins_.data();
      args.levels = levels_.data();
      args.min_levels = min_levels_.data();
    }
    kernel_.pack(args);
    return {};
  }

 private:
  // Reads whole rows of the stored matrix, as elements or codes.
  Status read(int64_t begin, int64_t end) {
    int64_t count = (end - begin) * cut_.whole;
    DType element = matrix_.format->element;
    bytes_.resize(as_size(count) * dtype_bytes(element));
    if (matrix_.format->quantised) return make(begin, end);
    if (part_.stored && part_.stored->is_plain() && part_.stored->element() == element) {
      return part_.stored->read_elements(begin, end, bytes_.data());
    }
    floats_.resize(as_size(count));
    TRY(read_rows(part_, cut_.whole, begin, end, floats_.data()));
    convert_elements(floats_.data(), DType::kF32, bytes_.data(), element, count);
    return {};
  }

  Status make(int64_t begin, int64_t end) {
    auto groups = as_size((end - begin) * (cut_.whole / cut_.group));
    scales_.resize(groups);
    zeros_.resize(groups);
    QuantisedRows to{reinterpret_cast<uint8_t*>(bytes_.data()), scales_.data(), zeros_.data()};
    if (matrix_.format->blocks != nullptr) {
      auto levels = as_size((end - begin) * (cut_.whole / kLevelColumns));
      mins_.resize(groups);
      levels_.resize(levels);
      min_levels_.resize(levels);
      to.mins = mins_.data();
      to.levels = levels_.data();
      to.min_levels = min_levels_.data();
    }
    return make_codes(part_, {matrix_.format, cut_.group}, cut_.whole, begin, end, floats_, to);
  }

  // Extracts the scales of this rank's columns, whose groups may be parts of whole groups.
  void cut_scales(int64_t lead, int64_t rows) {
    if (lead == 0 && cut_.count == cut_.whole) return;
    if (matrix_.format->blocks != nullptr) {
      for (std::vector<float>* of_groups : {&scales_, &mins_}) {
        cut_rows(*of_groups, lead, rows, cut_.whole / cut_.group, cut_.begin / cut_.group,
                 cut_.count / cut_.group);
      }
      cut_rows(levels_, lead, rows, cut_.whole / kLevelColumns, cut_.begin / kLevelColumns,
               cut_.count / kLevelColumns);
      return cut_rows(min_levels_, lead, rows, cut_.whole / kLevelColumns,
                      cut_.begin / kLevelColumns, cut_.count / kLevelColumns);
    }
    std::vector<float> scales;
    std::vector<uint8_t> zeros;
    for (int64_t r = lead; r < lead + rows; ++r) {
      for (int64_t c = cut_.begin; c < cut_.begin + cut_.count; c += matrix_.group) {
        auto from = as_size(r * (cut_.whole / cut_.group) + c / cut_.group);
        scales.push_back(scales_[from]);
        zeros.push_back(zeros_[from]);
      }
    }
    scales_ = std::move(scales);
    zeros_ = std::move(zeros);
  }

  const MatrixSource& part_;
  const PackedMatrix& matrix_;
  int64_t row_begin_;
  const ColumnCut& cut_;
  const GemmKernel& kernel_;
  std::vector<std::byte> bytes_;  // elements or codes
  std::vector<float> floats_, scales_, mins_;
  std::vector<uint8_t> zeros_, min_levels_;
  std::vector<int8_t> levels_;
};

}  // namespace

Result<MatrixForm> choose_form(std::span<const MatrixSource> parts, int64_t columns,
                               const WeightFormat* dtype_format, DType element) {
  QuantizationPlan::Choice choice = TRY(common_choice(parts));
  if (choice.made && choice.format != nullptr) {
    return quantised_form(parts, choice, columns);
  }
  if (dtype_format != nullptr && !choice.made) return MatrixForm{dtype_format, columns};
  if (std::optional<MatrixForm> exact = exact_form(parts, columns)) {
    return choice.weight_only ? weight_only_form(*exact, columns, element) : *exact;
  }
  const WeightFormat* plain = nullptr;
  for (const MatrixSource& part : parts) {
    bool as_stored = part.stored && part.stored->is_plain();
    plain = wider(plain, format_of(as_stored ? part.stored->element() : element));
  }
  return MatrixForm{plain, columns};
}

std::vector<std::span<const MatrixSource>> split_by_form(std::span<const MatrixSource> parts,
                                                         int64_t columns,
                                                         const WeightFormat* dtype_format) {
  bool one_form = dtype_format != nullptr;
  for (const MatrixSource& part : parts) one_form |= part.choice.made && part.choice.format;
  std::vector<std::span<const MatrixSource>> runs;
  for (size_t first = 0, last = 1; first < parts.size(); ++last) {
    auto run = parts.subspan(first, last - first);
    if (last < parts.size()) {
      bool together = exact_form(parts.subspan(first, run.size() + 1), columns).has_value();
      bool either = exact_form(run, columns) || exact_form(parts.subspan(last, 1), columns);
      if (one_form || together || !either) continue;
    }
    runs.push_back(run);
    first = last;
  }
  return runs;
}

bool keeps_codes(const MatrixSource& part, const MatrixForm& form) {
  if (!form.format->quantised || !part.stored || part.stored->is_plain()) return false;
  if (part.stored->format().empty() || part.stored->group() % form.group != 0) return false;
  if (becomes_fp8(part, *form.format)) return true;
  return common_format(format_named(part.stored->format()), form.format) == form.format;
}

Status make_codes(const MatrixSource& part, const MatrixForm& form, int64_t columns, int64_t begin,
                  int64_t end, std::vector<float>& rows, const QuantisedRows& to) {
  if (keeps_codes(part, form)) {
    TRY(part.stored->read_codes(begin, end, form.group, to));
    RowsShape shape{.rows = end - begin, .columns = columns, .group = form.group};
    if (becomes_fp8(part, *form.format)) recode_as_fp8(part.stored->format(), shape, to);
    return {};
  }
  if (!part.stored) {
    const RandomCodes& random = form.format->random;
    CHECK(random.deviation > 0, "{} as {}", part.name, form.format->name);
    int64_t count = (end - begin) * columns;
    random_codes(part.name, begin * columns, count, random, to.codes);
    std::fill_n(to.scales, count / form.group, random_scale(random));
    return {};
  }
  CHECK(form.format->quantise != nullptr, "{} to {}", part.name, form.format->name);
  rows.resize(as_size((end - begin) * columns));
  TRY(read_rows(part, columns, begin, end, rows.data()));
  TRY(check_finite(part, rows.data(), (end - begin) * columns));
  form.format->quantise(rows.data(), {.rows = end - begin, .columns = columns, .group = form.group},
                        to);
  return {};
}

Status pack_rows(const MatrixSource& part, const PackedMatrix& matrix, int64_t row_begin,
                 const ColumnCut& cut, const GemmKernel& kernel, ThreadPool& threads) {
  int64_t first = std::max<int64_t>(0, -row_begin);
  int64_t last = std::min(part.rows, matrix.rows - row_begin);
  int64_t grain = matrix.format->quantise_rows;
  int64_t chunk = std::clamp<int64_t>(kPackNumbers / cut.whole, 1, part.rows);
  chunk = divide_up(chunk, grain) * grain;
  std::mutex mutex;
  Status status;
  threads.parallel_for(last - first, chunk, [&](int64_t begin, int64_t end) {
    RowPacker packer(part, matrix, row_begin, cut, kernel);
    for (int64_t row = first + begin; row < first + end; row += chunk) {
      if (Status packed = packer.pack(row, std::min(first + end, row + chunk)); !packed) {
        std::lock_guard lock(mutex);
        status = packed;
        return;
      }
    }
  });
  return status;
}

}  // namespace banyan
