// Loads, stores and atomics.
#include <concepts>
#include <cstring>

#include "ptx/families.h"
#include "ptx/lanes.h"

namespace banyan::ptx::memory {
namespace {

Space take_space(Line& line) {
  if (line.take("global")) return Space::kGlobal;
  if (line.take("shared") || line.take("shared::cta")) return Space::kShared;
  if (line.take("shared::cluster")) return Space::kCluster;
  if (line.take("local")) return Space::kLocal;
  if (line.take("param") || line.take("param::entry")) return Space::kParameter;
  return Space::kGeneric;
}

// Orders and hints: here every access is seen by all at once.
void take_orders(Line& line) {
  for (const char* order : {"volatile", "relaxed", "acquire", "release", "acq_rel", "weak", "nc",
                            "cta", "cluster", "gpu", "sys"}) {
    line.take(order);
  }
  while (!line.take_prefix("L1::").empty()) {
  }
  while (!line.take_prefix("L2::").empty()) {
  }
}

size_t take_vector(Line& line) {
  return line.take("v2") ? 2 : line.take("v4") ? 4 : 1;
}

// Operands: what is loaded into, then the address. R is what a register holds.
template <class T, class R>
void run_load(Warp& warp, const Instruction& in) {
  size_t count = in.count - 1u;
  for_lanes(warp.mask, [&](int lane) {
    const std::byte* from =
        warp.memory(in, in.operands[count], sizeof(T) * static_cast<uint32_t>(count), lane);
    for (size_t i = 0; i < count; ++i) {
      T value;
      std::memcpy(&value, from + i * sizeof(T), sizeof(T));
      warp.lanes<R>(in.operands[i])[lane] = static_cast<R>(value);
    }
  });
}

template <class T>
Instruction::Run load_run(uint32_t bytes) {
  if constexpr (std::integral<T>) {
    if constexpr (sizeof(T) <= 2) {
      if (bytes == 2) return &run_load<T, uint16_t>;
    }
    if constexpr (sizeof(T) <= 4) {
      if (bytes == 4) return &run_load<T, uint32_t>;
    }
    if (bytes == 8) return &run_load<T, uint64_t>;
    return nullptr;
  } else {
    return load_run<Bits<T>>(bytes);
  }
}

void decode_ld(Line& line) {
  Instruction& in = line.instruction;
  in.space = take_space(line);
  take_orders(line);
  size_t count = take_vector(line);
  Type type = line.take_type();
  if (line.values(type, true, true) != count) fail("ld needs {} registers", count);
  uint32_t bytes = line.operands().front().bytes;
  in.run = with_type(type, [&]<class T>() { return load_run<T>(bytes); });
  line.address();
}

// Operands: the address, then what is stored.
template <class T, class R>
void run_store(Warp& warp, const Instruction& in) {
  size_t count = in.count - 1u;
  for_lanes(warp.mask, [&](int lane) {
    std::byte* to = warp.memory(in, in.operands[0], sizeof(T) * static_cast<uint32_t>(count), lane);
    warp.storing(in.space, to, sizeof(T) * count);
    for (size_t i = 0; i < count; ++i) {
      auto value = static_cast<T>(warp.lanes<R>(in.operands[1 + i])[lane]);
      std::memcpy(to + i * sizeof(T), &value, sizeof(T));
    }
    warp.stored(in.space, to, sizeof(T) * count, lane);
  });
}

template <class T>
Instruction::Run store_run(uint32_t bytes) {
  if (bytes == 2) return &run_store<T, uint16_t>;
  if (bytes == 4) return &run_store<T, uint32_t>;
  return bytes == 8 ? &run_store<T, uint64_t> : &run_store<T, T>;
}

void decode_st(Line& line) {
  if (line.take("async")) return copies::decode_store(line);
  Instruction& in = line.instruction;
  in.space = take_space(line);
  take_orders(line);
  size_t count = take_vector(line);
  Type type = line.take_type();
  line.address();
  if (line.values(type, true, false) != count) fail("st needs {} values", count);
  uint32_t bytes = line.operands()[1].bytes;
  in.run = with_type(type, [&]<class T>() { return store_run<Bits<T>>(bytes); });
}

struct Exchange {
  static auto of(auto, auto b) { return b; }
};
struct Sum {
  template <class T>
  static T of(T a, T b) {
    return static_cast<T>(a + b);
  }
};
struct Smaller {
  static auto of(std::integral auto a, decltype(a) b) { return b < a ? b : a; }
};
struct Larger {
  static auto of(std::integral auto a, decltype(a) b) { return a < b ? b : a; }
};
struct Conjunction {
  static auto of(std::integral auto a, decltype(a) b) { return static_cast<decltype(a)>(a & b); }
};
struct Disjunction {
  static auto of(std::integral auto a, decltype(a) b) { return static_cast<decltype(a)>(a | b); }
};

// Operands: the old value, the address, the operand.
template <class Op, class T>
void run_atomic(Warp& warp, const Instruction& in) {
  for_lanes(warp.mask, [&](int lane) {
    std::byte* at = warp.memory(in, in.operands[1], sizeof(T), lane);
    T old, operand = std::bit_cast<T>(warp.lanes<Bits<T>>(in.operands[2])[lane]);
    std::memcpy(&old, at, sizeof(T));
    T now = Op::of(old, operand);
    warp.storing(in.space, at, sizeof(T));
    std::memcpy(at, &now, sizeof(T));
    warp.stored(in.space, at, sizeof(T), lane);
    warp.lanes<Bits<T>>(in.operands[0])[lane] = std::bit_cast<Bits<T>>(old);
  });
}

template <class Op>
Instruction::Run atomic_run(Type type) {
  // Integers wrap around: without sign, except where order counts.
  return with_type(type, []<class T>() -> Instruction::Run {
    if constexpr (sizeof(T) >= 4 && requires { Op::of(T(), T()); }) return &run_atomic<Op, T>;
    return nullptr;
  });
}

struct Atomic {
  std::string_view name;
  Instruction::Run (*run)(Type);
};
constexpr Atomic kAtomics[] = {
    {"add", atomic_run<Sum>},    {"exch", atomic_run<Exchange>},   {"min", atomic_run<Smaller>},
    {"max", atomic_run<Larger>}, {"and", atomic_run<Conjunction>}, {"or", atomic_run<Disjunction>},
};

template <class T>
void run_compare_and_swap(Warp& warp, const Instruction& in) {
  for_lanes(warp.mask, [&](int lane) {
    std::byte* at = warp.memory(in, in.operands[1], sizeof(T), lane);
    T old;
    std::memcpy(&old, at, sizeof(T));
    T now = old == warp.lanes<T>(in.operands[2])[lane] ? warp.lanes<T>(in.operands[3])[lane] : old;
    warp.storing(in.space, at, sizeof(T));
    std::memcpy(at, &now, sizeof(T));
    warp.stored(in.space, at, sizeof(T), lane);
    warp.lanes<T>(in.operands[0])[lane] = old;
  });
}

void decode_atomic(Line& line, bool has_result) {
  Instruction& in = line.instruction;
  in.space = take_space(line);
  take_orders(line);
  Type type = line.take_type();
  if (has_result) {
    line.result(type);
  } else {
    line.sink(type);
  }
  line.address();
  line.value(type);
  std::string_view name = line.take_next();
  if (name == "cas") {
    line.value(type);
    in.run = type.bytes == 8 ? &run_compare_and_swap<uint64_t> : &run_compare_and_swap<uint32_t>;
  }
  for (const Atomic& atomic : kAtomics) {
    if (atomic.name == name) in.run = atomic.run(type);
  }
}
void decode_atom(Line& line) {
  decode_atomic(line, true);
}
void decode_red(Line& line) {
  decode_atomic(line, false);
}

// Warps see at once what others write, so that a fence has nothing to do; fences of the
// asynchronous proxy are of other rules.
void run_nothing(Warp&, const Instruction&) {}

void decode_membar(Line& line) {
  line.instruction.run = &run_nothing;
  line.take_next();
}
void decode_prefetch(Line& line) {
  take_space(line);
  line.instruction.run = &run_nothing;
  line.take_next();
  line.address();
}

constexpr Rule kRules[] = {{"ld", decode_ld},
                           {"ldu", decode_ld},
                           {"st", decode_st},
                           {"atom", decode_atom},
                           {"red", decode_red},
                           {"membar", decode_membar},
                           {"prefetch", decode_prefetch}};

}  // namespace

std::span<const Rule> rules() {
  return kRules;
}

}  // namespace banyan::ptx::memory
