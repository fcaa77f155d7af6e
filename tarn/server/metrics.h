// Counters, gauges and histograms of the process in the text format of Prometheus.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tarn::server {

/// Label names and values, e.g. {{"route", "/api/v2/datasets"}, {"status", "200"}}.
using Labels = std::vector<std::pair<std::string, std::string>>;

/// Only grows. Threads: any.
class Counter {
 public:
  void Add(uint64_t by = 1) { value_.fetch_add(by, std::memory_order_relaxed); }
  [[nodiscard]] uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

/// Goes up and down. Threads: any.
class Gauge {
 public:
  void Set(double value) { value_.store(value, std::memory_order_relaxed); }
  void Add(double by) { value_.fetch_add(by, std::memory_order_relaxed); }
  [[nodiscard]] double value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> value_{0};
};

/// Counts observations per upper bound. Threads: any.
class Histogram {
 public:
  explicit Histogram(std::vector<double> upper_bounds);
  void Observe(double value);
  [[nodiscard]] const std::vector<double>& upper_bounds() const { return upper_bounds_; }
  /// Observations at or below each bound (cumulative), then all of them.
  [[nodiscard]] std::vector<uint64_t> CumulativeCounts() const;
  [[nodiscard]] double sum() const { return sum_.load(std::memory_order_relaxed); }

 private:
  std::vector<double> upper_bounds_;
  std::unique_ptr<std::atomic<uint64_t>[]> counts_;  // One more than bounds: the rest.
  std::atomic<double> sum_{0};
};

/// One value of a metric that is kept elsewhere, e.g. in the metastore.
struct MetricSample {
  std::string name;
  std::string type;  // "counter" or "gauge".
  std::string help;
  Labels labels;
  double value = 0;
};
/// Gives such values when the text is rendered. Any thread; may call the registry.
using MetricCollector = std::function<std::vector<MetricSample>()>;

/// Owns the metrics of one process; references stay valid as long as it lives. Threads: any.
///
/// A metric is made by its first use; the number of label sets per name is limited, further ones
/// share the set {"overflow","true"}.
class MetricRegistry {
 public:
  MetricRegistry() = default;
  MetricRegistry(const MetricRegistry&) = delete;
  MetricRegistry& operator=(const MetricRegistry&) = delete;

  Counter& GetCounter(std::string_view name, std::string_view help, const Labels& labels = {});
  Gauge& GetGauge(std::string_view name, std::string_view help, const Labels& labels = {});
  Histogram& GetHistogram(std::string_view name, std::string_view help, const Labels& labels,
                          const std::vector<double>& upper_bounds);
  /// A gauge that is asked for when the text is rendered. `read` must not call the registry.
  void SetGaugeCallback(std::string_view name, std::string_view help, const Labels& labels,
                        std::function<double()> read);

  /// A collector may not give names that the registry has itself.
  void AddCollector(MetricCollector collector);

  /// Text format 0.0.4, metrics in order of their names.
  [[nodiscard]] std::string Render() const;

 private:
  struct Series {
    std::unique_ptr<Counter> counter;
    std::unique_ptr<Gauge> gauge;
    std::unique_ptr<Histogram> histogram;
    std::function<double()> callback;
  };
  struct Metric {
    std::string type;
    std::string help;
    std::map<std::string, Series> series;  // By rendered labels.
  };
  Series& Find(std::string_view name, std::string_view type, std::string_view help,
               const Labels& labels);

  [[nodiscard]] std::map<std::string, std::string> RenderCollected() const;

  mutable std::mutex mutex_;
  std::map<std::string, Metric, std::less<>> metrics_;  // Guarded by mutex_, as what follows.
  std::vector<MetricCollector> collectors_;
};

}  // namespace tarn::server
