// wgmma.*: products of a warpgroup.
#include "ptx/families.h"
#include "ptx/lanes.h"

namespace banyan::ptx::wgmma {
namespace {

void run_fence(Warp& warp, const Instruction&) {
  warp.products.fence();
}
void run_commit(Warp& warp, const Instruction&) {
  warp.products.commit();
}
void run_wait(Warp& warp, const Instruction& in) {
  warp.products.wait(in.data);
}
void run_product(Warp& warp, const Instruction& in) {
  warp.products.begin(in);
}

// "m64n128k16", or k32 of integers
uint32_t columns_of(std::string_view shape, bool integers) {
  size_t end = shape.find('k');
  if (!shape.starts_with("m64n") || end == shape.npos ||
      shape.substr(end) != (integers ? "k32" : "k16")) {
    fail("the shape {} of a product is not known", shape);
  }
  auto columns = static_cast<uint32_t>(parse_integer(shape.substr(4, end - 4)));
  if (columns == 0 || columns > 256 || columns % 8 != 0) fail("{} columns", columns);
  return columns;
}

void need_number(Line& line, uint64_t number) {
  uint64_t found = line.number();
  if (found != number) fail("{} where {} is known only", found, number);
}

// Neither is negated, and a never transposed.
void decode_signs(Line& line, ProductForm& form) {
  for (int i = 0; i < 2; ++i) need_number(line, 1);
  if (!form.a_in_registers) need_number(line, 0);
  uint64_t transposed = line.number();
  if (transposed > 1) fail("{} where 0 and 1 are known only", transposed);
  form.b_transposed = transposed == 1;
}

void decode_product(Line& line) {
  std::string_view shape = line.take_prefix("m64");
  bool integers = line.take("s32");
  if (!integers) line.need("f32");
  bool halves = !integers && line.take("f16");
  for (int i = halves ? 1 : 0; i < 2; ++i) line.need(integers ? "s8" : halves ? "f16" : "bf16");
  ProductForm form{columns_of(shape, integers), false, false, integers, halves};
  if (line.values(kB32, false, true) != form.results())
    fail("d needs {} registers", form.results());
  form.a_in_registers = line.peek().starts_with('{');
  if (form.a_in_registers) {
    if (line.values(kB32, false, false) != 4) fail("a needs 4 registers");
  } else {
    line.value(kB64);
  }
  line.value(kB64);
  line.predicate();
  if (!integers) decode_signs(line, form);
  line.instruction.run = &run_product;
  line.instruction.role = Instruction::Role::kProduct;
  line.instruction.data = form.packed();
}

void decode_wgmma(Line& line) {
  line.instruction.together = Together::kWarp;
  bool is_product = line.take("mma_async");
  if (line.take("fence")) line.instruction.run = &run_fence;
  if (line.take("commit_group")) line.instruction.run = &run_commit;
  if (line.take("wait_group")) {
    line.instruction.run = &run_wait;
    line.instruction.data = line.number();
  }
  line.need("sync");
  line.need("aligned");
  if (is_product) decode_product(line);
}

constexpr Rule kRules[] = {{"wgmma", decode_wgmma}};

}  // namespace

std::span<const Rule> rules() {
  return kRules;
}

}  // namespace banyan::ptx::wgmma
