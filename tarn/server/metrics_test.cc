#include "tarn/server/metrics.h"

#include <thread>

#include "test/support/matchers.h"

namespace tarn::server {
namespace {

TEST(MetricsTest, RendersTheTextFormatInOrder) {
  MetricRegistry metrics;
  metrics.GetCounter("b_total", "Bees.", {{"kind", "a\"b\\c\nd"}}).Add(3);
  metrics.GetGauge("a", "Ays.").Set(1.5);
  metrics.SetGaugeCallback("c", "Sees.", {}, [] { return 2.0; });
  Histogram& histogram = metrics.GetHistogram("d_seconds", "Dees.", {{"r", "x"}}, {0.1, 1});
  histogram.Observe(0.1);  // A bound includes itself.
  histogram.Observe(0.5);
  histogram.Observe(7);
  EXPECT_EQ(metrics.Render(),
            "# HELP a Ays.\n# TYPE a gauge\na 1.5\n"
            "# HELP b_total Bees.\n# TYPE b_total counter\nb_total{kind=\"a\\\"b\\\\c\\nd\"} 3\n"
            "# HELP c Sees.\n# TYPE c gauge\nc 2\n"
            "# HELP d_seconds Dees.\n# TYPE d_seconds histogram\n"
            "d_seconds_bucket{r=\"x\",le=\"0.1\"} 1\n"
            "d_seconds_bucket{r=\"x\",le=\"1\"} 2\n"
            "d_seconds_bucket{r=\"x\",le=\"+Inf\"} 3\n"
            "d_seconds_sum{r=\"x\"} 7.6\n"
            "d_seconds_count{r=\"x\"} 3\n");
}

TEST(MetricsTest, CollectorsAreAskedWhenTheTextIsRendered) {
  MetricRegistry metrics;
  metrics.GetCounter("b_total", "Bees.").Add(1);
  double value = 1;
  metrics.AddCollector([&] {
    metrics.GetCounter("seen_total", "Renderings.").Add();
    return std::vector<MetricSample>{
        {.name = "c", .type = "gauge", .help = "Sees.", .labels = {{"t", "x\"y"}}, .value = value},
        {.name = "a_total", .type = "counter", .help = "Ays.", .labels = {}, .value = 7},
        {.name = "c", .type = "gauge", .help = "Sees.", .labels = {{"t", "z"}}, .value = 2.5}};
  });
  const std::string expected =
      "# HELP a_total Ays.\n# TYPE a_total counter\na_total 7\n"
      "# HELP b_total Bees.\n# TYPE b_total counter\nb_total 1\n"
      "# HELP c Sees.\n# TYPE c gauge\nc{t=\"x\\\"y\"} 1\nc{t=\"z\"} 2.5\n"
      "# HELP seen_total Renderings.\n# TYPE seen_total counter\nseen_total 1\n";
  EXPECT_EQ(metrics.Render(), expected);
  value = 3;
  EXPECT_THAT(metrics.Render(), testing::HasSubstr("c{t=\"x\\\"y\"} 3\n"));
}

TEST(MetricsTest, TheSameLabelsAreTheSameSeries) {
  MetricRegistry metrics;
  Counter& first = metrics.GetCounter("n_total", "n", {{"a", "1"}});
  EXPECT_EQ(&first, &metrics.GetCounter("n_total", "n", {{"a", "1"}}));
  EXPECT_NE(&first, &metrics.GetCounter("n_total", "n", {{"a", "2"}}));
}

TEST(MetricsTest, LabelSetsAreLimited) {
  MetricRegistry metrics;
  for (int i = 0; i < 5000; ++i) {
    metrics.GetCounter("n_total", "n", {{"a", std::to_string(i)}}).Add();
  }
  const std::string text = metrics.Render();
  EXPECT_LT(std::ranges::count(text, '\n'), 2010);
  EXPECT_THAT(text, testing::HasSubstr("n_total{overflow=\"true\"} 3000\n"));
}

TEST(MetricsTest, ThreadsLoseNothing) {
  MetricRegistry metrics;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&metrics] {
      for (int i = 0; i < 1000; ++i) {
        metrics.GetCounter("n_total", "n").Add();
        metrics.GetHistogram("h", "h", {}, {1}).Observe(0.5);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(metrics.GetCounter("n_total", "n").value(), 4000U);
  EXPECT_EQ(metrics.GetHistogram("h", "h", {}, {1}).CumulativeCounts().back(), 4000U);
}

}  // namespace
}  // namespace tarn::server
