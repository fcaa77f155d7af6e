#include "tarn/server/native/runs.h"

#include <future>

#include "test/support/matchers.h"

namespace tarn::server::native {

namespace {

RunState WaitFor(const Runs& runs, const std::string& id) {
  while (true) {
    const std::optional<RunState> state = runs.Find(id);
    if (!state->running) {
      return *state;
    }
    std::this_thread::yield();
  }
}

TEST(RunsTest, OutcomeIsKept) {
  Runs runs;
  std::promise<void> gate;
  ASSERT_OK(runs.Start("1", "shop", [&] {
    gate.get_future().wait();
    return task::RunOutcome{.status = Status::Unavailable("broker is away"), .task = "shop.t"};
  }));
  EXPECT_TRUE(runs.Find("1")->running);
  EXPECT_EQ(runs.Find("1")->pipeline, "shop");
  gate.set_value();
  EXPECT_THAT(WaitFor(runs, "1").outcome.status, FailsWith(ErrorCode::kUnavailable, "broker"));
  EXPECT_EQ(runs.Find("1")->outcome.task, "shop.t");
  EXPECT_FALSE(runs.Find("2").has_value());
}

TEST(RunsTest, OldestEndedRunIsForgottenAndRunningOnesAreNot) {
  Runs runs;
  std::promise<void> gate;
  const std::shared_future<void> open = gate.get_future().share();
  ASSERT_OK(runs.Start("a", "shop", [] { return task::RunOutcome(); }));
  WaitFor(runs, "a");
  for (size_t i = 1; i <= kRunsMax; ++i) {
    ASSERT_OK(runs.Start("b" + std::to_string(i), "shop", [open] {
      open.wait();
      return task::RunOutcome();
    })) << i;
  }
  EXPECT_FALSE(runs.Find("a").has_value());
  EXPECT_THAT(runs.Start("c", "shop", [] { return task::RunOutcome(); }),
              Fails(ErrorCode::kResourceExhausted));
  gate.set_value();
}

}  // namespace

}  // namespace tarn::server::native
