// Launches as a queue collects them until it puts them on a stream: fewer than the slots of the
// kernel table ask for. A launch takes its time however little it does, so where one kernel can do
// the work of two that follow each other, to the same bits, it takes their place:
//
// - a kernel that computes rows also rounds or quantises them for the product after it, or after
//   the choice of experts: so what it reads must not lie where the product's workspace is;
// - a product that activates its outputs also rounds them for the product after it;
// - a norm is also multiplied by gates;
// - the block that chooses the experts of a row sorts its choices;
// - a sum also writes the copy of it, which a layer's output is, and its norm, and combines what
//   experts have computed, which is one of its summands;
// - independent kernels share one launch (horizontal fusion): norms of the delta rule's heads and
//   its gates, the rotation of a part of queries and the rounding of another one, the activations
//   of experts and of the one that all rows share.
//
// Issuer::issue<Kernel>(queue, kernel) launches a kernel.
#pragma once

#include <algorithm>
#include <type_traits>

#include "kernels/cuda/copies.h"
#include "kernels/cuda/delta.h"
#include "kernels/cuda/gemm.h"
#include "kernels/cuda/gemm_f32.h"
#include "kernels/cuda/horizontally_fused.h"
#include "kernels/cuda/launches.h"
#include "kernels/cuda/merge_parts.h"
#include "kernels/cuda/moe.h"
#include "kernels/cuda/rms_norm.h"
#include "kernels/cuda/rowwise.h"
#include "kernels/cuda/scaled_rows.h"
#include "kernels/cuda/tensor_gemm.h"

namespace banyan::cuda {

template <class Issuer>
class LaunchCollector {
 public:
  // Whatever the kernel does, x of the last product may have changed. A kernel that rounds x leaves
  // it as it is, and does not run again for the next product of the same x.
  template <class Kernel>
  void add(const Kernel& kernel) {
    if constexpr (kRoundsRows<Kernel>) {
      static constexpr char kName = 0;  // whose address is the kernel's own
      Operand operand = operand_of(&kName, kernel.a);
      if (operand == operand_) return;
      if (!joins(kernel)) launches_.add(kernel, issue_of<Kernel>());
      operand_ = operand;
    } else {
      operand_ = {};
      if (!joins(kernel)) launches_.add(kernel, issue_of<Kernel>());
    }
  }
  // A product, which leaves its operand as it is. multiply() launches it.
  void add_product(const TensorProduct& product, void (*multiply)(const TensorProduct&)) {
    launches_.add(Product{product, multiply}, issue_of<Product>());
  }

  const LaunchList& launches() const { return launches_; }
  void clear() {
    operand_ = {};
    launches_.clear();
  }

 private:
  template <class Kernel>
  static constexpr bool kRoundsRows =
      std::is_same_v<Kernel, RoundRows> || std::is_same_v<Kernel, ScaleRows> ||
      std::is_same_v<Kernel, QuantiseRows>;
  struct Product {
    TensorProduct product;
    void (*multiply)(const TensorProduct&);

    // If it is known how many rows it writes.
    bool leaves(const PreparedOperand& next) const {
      const GemmArgs& args = product.args;
      if (args.x_index != nullptr) return false;
      const SiluMul& activation = product.activation;
      return begins().apart(next.workspace) &&
             next.left_by(workspace(), floats(args.y, args.x_rows * args.y_stride),
                          floats(activation.a.y, activation.a.rows * activation.a.dim),
                          prepared_range(activation.rounded, {}));
    }
    // Whether something may be written while it runs.
    bool reads_apart_from(const MemoryRange& range) const {
      const GemmArgs& args = product.args;
      int64_t sources = args.x_index != nullptr ? product.activation.a.rows : 0;
      return begins().apart(range) && workspace().apart(range) &&
             range_of(args.x_index, sources).apart(range);
    }
    static void issue_on(void* /*queue*/, const void* what) {
      const auto& product = *static_cast<const Product*>(what);
      product.multiply(product.product);
    }

   private:
    MemoryRange begins() const {
      const GemmGroup& w = product.args.weights;
      return range_of(w.begins, w.begins != nullptr ? w.count + 1 : 0);
    }
    MemoryRange workspace() const {
      const GemmArgs& args = product.args;
      size_t bytes = std::max(rounded_bytes<Float16>(args.x_rows, args.segments, args.k),
                              QuantisedRows::bytes(args.x_rows, args.segments, args.k, args.group));
      return {args.workspace, bytes};
    }
  };
  using Activations = HorizontallyFused<SiluMul, SiluMul>;

  template <class Kernel>
  static constexpr LaunchList::Issue issue_of() {
    if constexpr (std::is_same_v<Kernel, Product>) {
      return Product::issue_on;
    } else {
      return Issuer::template issue<Kernel>;
    }
  }
  template <class Kernel>
  Kernel* last(size_t before = 0) {
    return launches_.template last<Kernel>(issue_of<Kernel>(), before);
  }

  // Lets the last launch do what the kernel would, if it may.
  template <class Kernel>
  bool joins(const Kernel&) {
    return false;
  }
  bool joins(const RoundRows& rounding) {
    const GemmArgs& product = rounding.a;
    MemoryRange workspace = {product.workspace,
                             RoundedRows::bytes(product.x_rows, product.segments, product.k)};
    return prepare_in<AddRmsNorm, CombineAddRmsNorm, NormGateMul, RmsNorm, SiluMul, GateMul,
                      AttendTiles>(product, workspace,
                                   [&](auto* last) {
                                     last->rounded = rounded_rows(product);
                                     return true;
                                   }) ||
           product_rounds(product, workspace) || fuse_with_last<Rope>(rounding);
  }
  bool joins(const QuantiseRows& quantising) {
    QuantisedRows to = quantised_rows(quantising.a);
    if (!may_quantise(to)) return false;
    return prepare_in<AddRmsNorm, CombineAddRmsNorm, RmsNorm, SiluMul, AttendTiles>(
        quantising.a, to.range(), [&](auto* last) {
          if constexpr (requires { last->may_quantise(to); }) {
            if (!last->may_quantise(to)) return false;
          }
          last->quantised = to;
          return true;
        });
  }
  bool joins(const SiluMul& activation) { return fuse_with_last<SiluMul>(activation); }
  bool joins(const DeltaGates& gates) { return fuse_with_last<RmsNorm>(gates); }
  bool joins(const CopyRows& copy) {
    Add* sum = last<Add>();
    if (sum == nullptr || !sum->may_copy(copy.a)) return false;
    sum->copy = copy.a.y;
    return true;
  }
  bool joins(const RmsNorm& norm) {
    const Add* sum = last<Add>();
    if (sum == nullptr || !AddRmsNorm::may_join(*sum, norm)) return false;
    AddRmsNorm both{*sum, norm};
    const CombineExperts* experts = last<CombineExperts>(1);
    if (experts != nullptr && CombineAddRmsNorm::may_join(*experts, both)) {
      launches_.replace_last(CombineAddRmsNorm{*experts, both}, issue_of<CombineAddRmsNorm>(), 2);
    } else {
      launches_.replace_last(both, issue_of<AddRmsNorm>());
    }
    return true;
  }
  bool joins(const GateMul& gate) {
    const RmsNorm* norm = last<RmsNorm>();
    if (norm == nullptr || !NormGateMul::may_join(*norm, gate)) return false;
    launches_.replace_last(NormGateMul{*norm, gate}, issue_of<NormGateMul>());
    return true;
  }
  bool joins(const SortFewExperts& sort) {
    const Route* route = last<Route>();
    if (route == nullptr || !RouteAndSort::may_join(*route, sort)) return false;
    launches_.replace_last(RouteAndSort{*route, sort}, issue_of<RouteAndSort>());
    return true;
  }

  // Fuses an independent kernel with the last launch.
  template <class First, class Second>
  bool fuse_with_last(const Second& second) {
    const First* first = last<First>();
    if (first == nullptr || !HorizontallyFused<First, Second>::may_join(*first, second))
      return false;
    launches_.replace_last(HorizontallyFused<First, Second>{*first, second},
                           issue_of<HorizontallyFused<First, Second>>());
    return true;
  }

  // How many of the last launches route rows or multiply them, and leave x of a product and its
  // workspace as they are.
  size_t launches_between(const GemmArgs& product, const MemoryRange& workspace) {
    PreparedOperand operand = {floats(product.x, product.x_rows * product.x_stride), workspace};
    size_t before = 0;
    while (
        leaves<FewRowsF32, SomeRowsF32, ManyRowsF32, Route, RouteAndSort, SortFewExperts, Product>(
            before, operand)) {
      ++before;
    }
    return before;
  }

  template <class... Kernels>
  bool leaves(size_t before, const PreparedOperand& operand) {
    auto leaves_it = [&](const auto* kernel) {
      return kernel != nullptr && kernel->leaves(operand);
    };
    return (leaves_it(last<Kernels>(before)) || ...);
  }

  // Whether a kernel prepares its rows for another product already.
  template <class Kernel>
  static bool is_prepared(const Kernel& kernel) {
    if constexpr (requires { kernel.quantised; }) {
      if (kernel.quantised.workspace != nullptr) return true;
    }
    return kernel.rounded.workspace != nullptr;
  }
  // Lets the kernel that computes x of a product, one of Kernels or of two activations, prepare it:
  // prepare(kernel) returns whether it does. Launches that route rows may lie between a norm and
  // the product of experts, and this product between an activation and another product.
  template <class... Kernels, class Prepare>
  bool prepare_in(const GemmArgs& product, const MemoryRange& workspace, const Prepare& prepare) {
    size_t before = launches_between(product, workspace);
    auto may = [&](auto* last) {
      return last != nullptr && !is_prepared(*last) && last->may_prepare(product, workspace) &&
             prepare(last);
    };
    return (may(last<Kernels>(before)) || ...) || may(activation_of(product, workspace, before));
  }
  // Lets a product that computes x of the next one as activations round them.
  bool product_rounds(const GemmArgs& next, const MemoryRange& workspace) {
    auto* product = last<Product>(launches_between(next, workspace));
    if (product == nullptr || !product->product.is_gated()) return false;
    SiluMul& activation = product->product.activation;
    if (is_prepared(activation) || !activation.may_prepare(next, workspace)) return false;
    if (!product->reads_apart_from(workspace)) return false;
    activation.rounded = rounded_rows(next);
    return true;
  }
  // If the launch `before` the last one computes two activations: the one that computes x of a
  // product, if the other one leaves the product's workspace alone.
  SiluMul* activation_of(const GemmArgs& product, const MemoryRange& workspace, size_t before) {
    auto* both = last<Activations>(before);
    if (both == nullptr) return nullptr;
    bool is_first = both->first.a.y == product.x;
    const SiluMul& other = is_first ? both->second : both->first;
    std::array<MemoryRange, 1> written = {workspace};
    bool apart = all_apart(written, other.reads()) && all_apart(written, other.writes());
    return !apart ? nullptr : is_first ? &both->first : &both->second;
  }

  LaunchList launches_;
  Operand operand_;  // in the workspace of the last product
};

}  // namespace banyan::cuda
