// A home with the control of its tasks. For tests of the routes that need one.
#pragma once

#include <memory>
#include <string_view>

#include "tarn/base/memory_budget.h"
#include "tarn/server/home_fixture.h"
#include "tarn/task/control.h"

namespace tarn::server {

class ControlFixture : public HomeFixture {
 protected:
  void SetUp() override {
    HomeFixture::SetUp();
    ASSERT_OK(database_->Migrate(task::Migrations()));
    control_ = std::make_unique<task::Control>(
        task::ControlDeps{.database = *database_,
                          .datasets = *datasets_,
                          .catalog = *catalog_,
                          .engine = *engine_,
                          .budget = budget_,
                          .is_source_allowed = [](std::string_view) { return true; }});
  }

  MemoryBudget budget_{1ULL << 30};
  std::unique_ptr<task::Control> control_;
};

}  // namespace tarn::server
