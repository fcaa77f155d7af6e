#include "tarn/server/metrics.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "tarn/base/check.h"

namespace tarn::server {

namespace {

constexpr size_t kSeriesPerMetricMax = 2000;

std::string EscapeLabel(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\' || c == '"') {
      escaped += '\\';
      escaped += c;
    } else if (c == '\n') {
      escaped += "\\n";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

/// `a="1",b="2"`, without braces.
std::string RenderLabels(const Labels& labels) {
  std::string text;
  for (const auto& [name, value] : labels) {
    if (!text.empty()) {
      text += ',';
    }
    text += name + "=\"" + EscapeLabel(value) + "\"";
  }
  return text;
}

std::string RenderValue(double value) {
  if (std::isnan(value)) {
    return "NaN";
  }
  if (std::isinf(value)) {
    return value > 0 ? "+Inf" : "-Inf";
  }
  return fmt::format("{}", value);
}

std::string Line(std::string_view name, const std::string& labels, std::string_view value) {
  return labels.empty() ? fmt::format("{} {}\n", name, value)
                        : fmt::format("{}{{{}}} {}\n", name, labels, value);
}

std::string RenderHistogram(std::string_view name, const std::string& labels,
                            const Histogram& histogram) {
  const std::vector<uint64_t> counts = histogram.CumulativeCounts();
  const std::string separator = labels.empty() ? "" : ",";
  std::string text;
  for (size_t i = 0; i < counts.size(); ++i) {
    const std::string bound = i < histogram.upper_bounds().size()
                                  ? RenderValue(histogram.upper_bounds()[i])
                                  : std::string("+Inf");
    text += Line(fmt::format("{}_bucket", name),
                 fmt::format("{}{}le=\"{}\"", labels, separator, bound), std::to_string(counts[i]));
  }
  text += Line(fmt::format("{}_sum", name), labels, RenderValue(histogram.sum()));
  return text + Line(fmt::format("{}_count", name), labels, std::to_string(counts.back()));
}

}  // namespace

Histogram::Histogram(std::vector<double> upper_bounds)
    : upper_bounds_(std::move(upper_bounds)),
      counts_(std::make_unique<std::atomic<uint64_t>[]>(upper_bounds_.size() + 1)) {
  TARN_CHECK(std::ranges::is_sorted(upper_bounds_));
}

void Histogram::Observe(double value) {
  const auto bound = std::ranges::lower_bound(upper_bounds_, value);
  counts_[static_cast<size_t>(bound - upper_bounds_.begin())].fetch_add(1,
                                                                        std::memory_order_relaxed);
  sum_.fetch_add(value, std::memory_order_relaxed);
}

std::vector<uint64_t> Histogram::CumulativeCounts() const {
  std::vector<uint64_t> cumulative;
  uint64_t total = 0;
  for (size_t i = 0; i <= upper_bounds_.size(); ++i) {
    total += counts_[i].load(std::memory_order_relaxed);
    cumulative.push_back(total);
  }
  return cumulative;
}

MetricRegistry::Series& MetricRegistry::Find(std::string_view name, std::string_view type,
                                             std::string_view help, const Labels& labels) {
  auto found = metrics_.find(name);
  if (found == metrics_.end()) {
    found = metrics_
                .emplace(std::string(name),
                         Metric{.type = std::string(type), .help = std::string(help), .series = {}})
                .first;
  }
  Metric& metric = found->second;
  TARN_CHECK(metric.type == type);
  const std::string key = RenderLabels(labels);
  if (!metric.series.contains(key) && metric.series.size() >= kSeriesPerMetricMax) {
    return metric.series["overflow=\"true\""];
  }
  return metric.series[key];
}

Counter& MetricRegistry::GetCounter(std::string_view name, std::string_view help,
                                    const Labels& labels) {
  const std::lock_guard lock(mutex_);
  Series& series = Find(name, "counter", help, labels);
  if (!series.counter) {
    series.counter = std::make_unique<Counter>();
  }
  return *series.counter;
}

Gauge& MetricRegistry::GetGauge(std::string_view name, std::string_view help,
                                const Labels& labels) {
  const std::lock_guard lock(mutex_);
  Series& series = Find(name, "gauge", help, labels);
  if (!series.gauge) {
    series.gauge = std::make_unique<Gauge>();
  }
  return *series.gauge;
}

Histogram& MetricRegistry::GetHistogram(std::string_view name, std::string_view help,
                                        const Labels& labels,
                                        const std::vector<double>& upper_bounds) {
  const std::lock_guard lock(mutex_);
  Series& series = Find(name, "histogram", help, labels);
  if (!series.histogram) {
    series.histogram = std::make_unique<Histogram>(upper_bounds);
  }
  return *series.histogram;
}

void MetricRegistry::SetGaugeCallback(std::string_view name, std::string_view help,
                                      const Labels& labels, std::function<double()> read) {
  const std::lock_guard lock(mutex_);
  Find(name, "gauge", help, labels).callback = std::move(read);
}

void MetricRegistry::AddCollector(MetricCollector collector) {
  const std::lock_guard lock(mutex_);
  collectors_.push_back(std::move(collector));
}

// Text of each metric that collectors give, by name.
std::map<std::string, std::string> MetricRegistry::RenderCollected() const {
  std::vector<MetricCollector> collectors;
  {
    const std::lock_guard lock(mutex_);
    collectors = collectors_;
  }
  std::map<std::string, std::string> texts;
  for (const MetricCollector& collect : collectors) {
    for (const MetricSample& sample : collect()) {
      std::string& text = texts[sample.name];
      if (text.empty()) {
        text = fmt::format("# HELP {} {}\n# TYPE {} {}\n", sample.name, sample.help, sample.name,
                           sample.type);
      }
      text += Line(sample.name, RenderLabels(sample.labels), RenderValue(sample.value));
    }
  }
  return texts;
}

std::string MetricRegistry::Render() const {
  std::map<std::string, std::string> texts = RenderCollected();
  const std::lock_guard lock(mutex_);
  for (const auto& [name, metric] : metrics_) {
    std::string& text = texts[name];
    text = fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, metric.help, name, metric.type);
    for (const auto& [labels, series] : metric.series) {
      if (series.counter) {
        text += Line(name, labels, std::to_string(series.counter->value()));
      } else if (series.histogram) {
        text += RenderHistogram(name, labels, *series.histogram);
      } else if (series.callback) {
        text += Line(name, labels, RenderValue(series.callback()));
      } else if (series.gauge) {
        text += Line(name, labels, RenderValue(series.gauge->value()));
      }
    }
  }
  std::string all;
  for (const auto& [name, text] : texts) {
    all += text;
  }
  return all;
}

}  // namespace tarn::server
