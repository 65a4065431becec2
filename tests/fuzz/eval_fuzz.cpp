// Any bytes as a task's data, as a file of predictions and as an answer.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "eval/answers.h"
#include "eval/predictions.h"
#include "eval/task.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string text(reinterpret_cast<const char*>(data), size);
  for (const banyan::EvalTask& task : banyan::eval_tasks()) {
    banyan::EvalSource source{.data = text, .data_name = "data"};
    for (int64_t shots : {0, 1}) {
      auto set = banyan::make_eval_set(task, source, shots);
      if (set) CHECK(!set->items.empty());
    }
    (void)task.extract(text);
  }
  if (auto number = banyan::last_number(text)) CHECK(banyan::last_number(*number) == number);
  auto read = banyan::read_predictions(text, "predictions", {{"task", "gsm8k"}}, 4);
  if (read) CHECK(read->kept_bytes <= text.size());
  return 0;
}
