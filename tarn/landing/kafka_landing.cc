// A landing task over topics of Kafka.
//
// A batch holds messages of many partitions and maybe several datasets; all of it, and the offsets
// behind it, are one SQL transaction. The start of a partition is stored before it is read, so that
// `start: now` means one moment whatever happens after.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "tarn/base/crash_point.h"
#include "tarn/base/log.h"
#include "tarn/landing/dead_letter_file.h"
#include "tarn/landing/kafka_target.h"
#include "tarn/landing/topic_names.h"
#include "tarn/source/kafka/kafka_source.h"
#include "tarn/source/kafka/topic_selection.h"

namespace tarn::landing {

namespace {

using source::kafka::KafkaBatch;
using source::kafka::KafkaMessage;
using source::kafka::KafkaSource;
using source::kafka::LostRange;
using source::kafka::Offsets;
using source::kafka::PartitionAdvance;
using source::kafka::PartitionLag;
using source::kafka::PlannedStart;
using source::kafka::ReadUntil;
using source::kafka::TopicPartition;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kStepMax{1000};  // Then Step reports, with or without a commit.
constexpr milliseconds kWaitMax{100};
constexpr milliseconds kLagsEvery{1000};
constexpr size_t kPartitionsPerLagSecond = 500;  // More partitions are looked at less often.
constexpr size_t kMessagesMax = 4096;
// Behind: what waits is at least this many messages, and that many seconds' work.
constexpr int64_t kBehindMessagesMin = 100'000;
constexpr double kBehindSeconds = 2;

struct KafkaLandingRun final : LandingRun {
  // A partition, by its index in the source.
  struct Part {
    KafkaTarget* target = nullptr;
    int64_t next = 0;   // Behind what was taken.
    LandedRange range;  // Of the batch.
    bool in_batch = false;
  };

  KafkaLandingRun(LandingSpec landing_spec, LandingDatasets landing_datasets,
                  LandingDeps landing_deps)
      : spec(std::move(landing_spec)),
        datasets(std::move(landing_datasets)),
        deps(std::move(landing_deps)) {}

  Status Open() override;
  Result<LandingProgress> Step() override;
  void Cancel() override;
  Status OpenSource();
  Status CheckCluster() const;
  Result<KafkaTarget*> TargetOf(const std::string& topic);
  Status StoreStarts(const std::vector<PlannedStart>& starts);
  Result<Part*> PartAt(uint32_t index);
  [[nodiscard]] steady_clock::time_point StartOfBatch() const;
  void Touch(Part& part, uint32_t index);
  Status TakeBatch(const KafkaBatch& batch, LandingProgress& progress);
  Status TakeMessages(const KafkaBatch& batch);
  Status PassOver(const LostRange& lost, LandingProgress& progress);
  [[nodiscard]] bool IsFull() const;
  [[nodiscard]] milliseconds Age() const;
  [[nodiscard]] milliseconds WaitFor(steady_clock::time_point step_started) const;
  [[nodiscard]] bool IsRecorded(const KafkaTarget& target) const;
  [[nodiscard]] bool IsPassing(const Part& part) const;
  [[nodiscard]] StoredOffset OffsetBehind(uint32_t index) const;
  Status Commit(LandingProgress& progress);
  Status TakeLetters(KafkaTarget& target);
  Status CloseBatch();
  Status WriteCommit(metastore::SqlTransaction& sql,
                     const std::optional<dataset::StoredFile>& letter_file,
                     LandingProgress& progress);
  void EndBatch();
  [[nodiscard]] LandingProgress Counted() const;
  void ReadLags(LandingProgress& progress, steady_clock::time_point now);
  void Report(LandingProgress& progress);

  LandingSpec spec;
  LandingDatasets datasets;
  LandingDeps deps;
  StoredOffsets stored;
  std::map<std::string, std::unique_ptr<KafkaTarget>> targets;  // By name of the dataset.
  std::map<std::string, std::string, std::less<>> topic_of;     // By name of the dataset.
  std::unique_ptr<KafkaSource> source;
  std::vector<Part> parts;
  std::vector<uint32_t> touched;            // Parts of the batch.
  std::unique_ptr<DeadLetterFile> letters;  // Of the batch.
  int64_t bytes_in_batch = 0;
  Timestamp batch_start{};
  steady_clock::time_point batch_started;
  steady_clock::time_point cut;           // When the batch before was.
  bool was_idle = true;                   // Nothing waited at some moment since then.
  std::optional<Timestamp> newest_event;  // Of what is committed, as the counts.
  LandingCounts counts;
  format::JsonCounters json_counters;
  std::vector<source::kafka::KafkaHeader> headers;
  std::string headers_json;
  steady_clock::time_point lags_read;
  int64_t taken = 0;                  // Messages since then.
  std::optional<int64_t> broker_lag;  // As of then, as below.
  bool behind = false;
  std::optional<Timestamp> oldest_behind;
  std::atomic<bool> cancelled{false};
};

Status KafkaLandingRun::Open() {
  TARN_RETURN_IF_ERROR(deps.database.Read([&](metastore::SqlTransaction& sql) -> Status {
    TARN_ASSIGN_OR_RETURN(stored, ReadOffsets(sql, datasets.landing.ToString()));
    return Status::Ok();
  }));
  // The dataset of the task itself holds what is known of the cluster, whatever lands there.
  auto home = std::make_unique<KafkaTarget>(spec, datasets, deps);
  TARN_RETURN_IF_ERROR(home->Open(datasets.landing, stored));
  targets.emplace(spec.name, std::move(home));
  if (!spec.kafka->one_dataset) {
    // The datasets of topics that are read no more may be gone, too.
    TARN_ASSIGN_OR_RETURN(
        const source::kafka::TopicSelection selection,
        source::kafka::TopicSelection::Make(spec.kafka->source.topics, spec.kafka->source.exclude));
    for (const auto& [where, offset] : StoredOffsets(stored)) {
      if (selection.Matches(where.topic)) {
        TARN_RETURN_IF_ERROR(TargetOf(where.topic));
      }
    }
  }
  return OpenSource();
}

Status KafkaLandingRun::OpenSource() {
  source::kafka::KafkaStart start;
  start.first_start = targets.at(spec.name)->cluster().empty();
  for (const auto& [where, offset] : stored) {
    start.next[where] = offset.next;
    if (offset.seen) {
      start.seen[where] = *offset.seen;
    }
  }
  source::kafka::KafkaSourceOptions options = spec.kafka->source;
  options.until = deps.until;
  TARN_ASSIGN_OR_RETURN(source, KafkaSource::Open(options, start, deps.budget));
  TARN_RETURN_IF_ERROR(CheckCluster());
  // Partitions that come after this start are later ones, also when there is none yet.
  return start.first_start && source->partition_count() == 0 ? StoreStarts({}) : Status::Ok();
}

Status KafkaLandingRun::CheckCluster() const {
  const std::string& known = targets.at(spec.name)->cluster();
  if (!known.empty() && !source->cluster_id().empty() && known != source->cluster_id()) {
    return Status::FailedPrecondition(fmt::format(
        "the brokers belong to cluster {}, but {}.{} has landed topics of cluster {}, whose "
        "offsets mean nothing there; land into another name or schema",
        source->cluster_id(), spec.schema, spec.name, known));
  }
  return Status::Ok();
}

Result<KafkaTarget*> KafkaLandingRun::TargetOf(const std::string& topic) {
  if (spec.kafka->one_dataset) {
    return targets.at(spec.name).get();
  }
  const std::string name = DatasetNameOf(topic);
  const auto [owner, fresh] = topic_of.emplace(name, topic);
  if (owner->second != topic) {
    return Status::FailedPrecondition(
        fmt::format("topics {} and {} would both land in {}.{}: exclude one, or land them by "
                    "two tasks",
                    owner->second, topic, spec.schema, name));
  }
  const auto known = targets.find(name);
  if (known != targets.end() && name != spec.name) {
    return known->second.get();
  }
  if (name == spec.name || name == spec.rejected_name()) {
    return Status::FailedPrecondition(fmt::format(
        "topic {} would land in {}.{}, which the task needs for itself: give the task another name",
        topic, spec.schema, name));
  }
  TARN_ASSIGN_OR_RETURN(LandingDatasets made, deps.topic_datasets(name));
  made.rejected = datasets.rejected;
  LandingSpec of_topic = spec;
  of_topic.name = name;
  auto target = std::make_unique<KafkaTarget>(std::move(of_topic), std::move(made), deps);
  TARN_RETURN_IF_ERROR(target->Open(datasets.landing, stored));
  return targets.emplace(name, std::move(target)).first->second.get();
}

Status KafkaLandingRun::StoreStarts(const std::vector<PlannedStart>& starts) {
  StoredOffsets fresh;
  for (const PlannedStart& start : starts) {
    TARN_RETURN_IF_ERROR(TargetOf(start.where.topic));
    fresh[start.where] = {.first = start.offset, .next = start.offset};
  }
  TARN_RETURN_IF_ERROR(deps.database.Write([&](metastore::SqlTransaction& sql) -> Status {
    if (deps.fence) {
      TARN_RETURN_IF_ERROR(deps.fence(sql));
    }
    const std::string home = datasets.landing.ToString();
    const std::string& id = source->cluster_id();
    TARN_RETURN_IF_ERROR(WriteCluster(sql, home, id.empty() ? "unnamed" : id));
    return WriteOffsets(sql, home, fresh);
  }));
  stored.insert(fresh.begin(), fresh.end());
  return Status::Ok();
}

Result<KafkaLandingRun::Part*> KafkaLandingRun::PartAt(uint32_t index) {
  if (index >= parts.size()) {
    parts.resize(source->partition_count());
  }
  Part& part = parts[index];
  if (part.target == nullptr) {
    const TopicPartition& where = source->partition(index);
    const auto known = stored.find(where);
    if (known == stored.end()) {
      return Status::Internal(NameOf(where) + " was read before its start was stored");
    }
    TARN_ASSIGN_OR_RETURN(part.target, TargetOf(where.topic));
    part.next = known->second.next;
  }
  return &part;
}

// Messages that came while the batch before was committed have waited since then. At least half an
// interval is left: a slow commit must not make ever smaller batches.
steady_clock::time_point KafkaLandingRun::StartOfBatch() const {
  const auto now = steady_clock::now();
  return was_idle ? now : std::max(cut, now - spec.commit.interval / 2);
}

void KafkaLandingRun::Touch(Part& part, uint32_t index) {
  if (part.in_batch) {
    return;
  }
  if (touched.empty()) {
    batch_start = deps.clock.Now();
    batch_started = StartOfBatch();
  }
  part.in_batch = true;
  part.range = {.where = source->partition(index), .from = part.next, .to = part.next};
  touched.push_back(index);
}

Status KafkaLandingRun::TakeMessages(const KafkaBatch& batch) {
  Part* part = nullptr;
  uint32_t index = 0;
  LandedMessage landed;
  taken += static_cast<int64_t>(batch.messages.size());
  for (const KafkaMessage& message : batch.messages) {
    if (part == nullptr || message.partition != index) {
      index = message.partition;
      TARN_ASSIGN_OR_RETURN(part, PartAt(index));
      Touch(*part, index);
      landed.topic = part->range.where.topic;
      landed.partition = part->range.where.partition;
    }
    ReadHeaders(message, headers);
    WriteHeadersJson(headers, headers_json);
    landed.has_key = message.has_key;
    landed.has_value = message.has_value;
    landed.has_time = message.time_ms >= 0;
    landed.offset = message.offset;
    landed.time_micros = message.time_ms * 1000;
    landed.key = message.key;
    landed.value = message.value;
    landed.headers = headers_json;
    bytes_in_batch += static_cast<int64_t>(message.key.size() + message.value.size());
    TARN_RETURN_IF_ERROR(part->target->rows().TakeMessage(landed));
    part->next = message.offset + 1;
    part->range.to = part->next;
    ++part->range.messages;
  }
  return Status::Ok();
}

// The gap goes into the record of the next transaction of the dataset, and the offset moves with
// it: until then another life of the task would find the same gap.
Status KafkaLandingRun::PassOver(const LostRange& lost, LandingProgress& progress) {
  for (uint32_t index = 0; index < source->partition_count(); ++index) {
    if (source->partition(index) != lost.where) {
      continue;
    }
    TARN_ASSIGN_OR_RETURN(Part * part, PartAt(index));
    if (part->in_batch) {
      TARN_RETURN_IF_ERROR(Commit(progress));  // Its range ends here.
    }
    part->next = lost.to;
    part->target->gaps.push_back(lost);
    StoredOffset& known = stored[lost.where];
    if (known.recorded_to() < known.next) {
      part->target->before_gaps.push_back(
          {.where = lost.where, .from = known.recorded_to(), .to = known.next});
    }
    known = {.first = lost.to, .next = lost.to};
  }
  return Status::Ok();
}

Status KafkaLandingRun::TakeBatch(const KafkaBatch& batch, LandingProgress& progress) {
  for (const source::kafka::KafkaNotice& notice : batch.notices) {
    progress.warnings.push_back({.code = notice.code, .object = notice.object});
    Log(LogLevel::kWarning, "landing",
        fmt::format("{}: {}: {}", spec.name, notice.code, notice.object));
  }
  if (!batch.started.empty()) {
    TARN_RETURN_IF_ERROR(StoreStarts(batch.started));
  }
  for (const LostRange& lost : batch.lost) {
    TARN_RETURN_IF_ERROR(PassOver(lost, progress));
  }
  TARN_RETURN_IF_ERROR(TakeMessages(batch));
  for (const PartitionAdvance& advance : batch.advances) {
    TARN_ASSIGN_OR_RETURN(Part * part, PartAt(advance.partition));
    Touch(*part, advance.partition);
    part->next = advance.next;
    part->range.to = advance.next;
  }
  for (const auto& [name, target] : targets) {
    TARN_RETURN_IF_ERROR(TakeLetters(*target));
    if (target->rows().IsPieceFull()) {
      TARN_RETURN_IF_ERROR(target->HandOver(batch_start));
    }
  }
  return Status::Ok();
}

milliseconds KafkaLandingRun::Age() const {
  return touched.empty()
             ? milliseconds(0)
             : std::chrono::duration_cast<milliseconds>(steady_clock::now() - batch_started);
}

bool KafkaLandingRun::IsFull() const {
  int64_t rows = 0;
  for (const auto& [name, target] : targets) {
    rows += target->row_count();
  }
  return rows >= spec.commit.rows || bytes_in_batch >= spec.commit.bytes ||
         (!touched.empty() && Age() >= spec.commit.interval);
}

milliseconds KafkaLandingRun::WaitFor(steady_clock::time_point step_started) const {
  const auto stepped = std::chrono::duration_cast<milliseconds>(steady_clock::now() - step_started);
  milliseconds wait = std::min(kWaitMax, kStepMax - stepped);
  if (!touched.empty()) {
    wait = std::min(wait, spec.commit.interval - Age());
  }
  return std::max(wait, milliseconds(1));
}

Result<LandingProgress> KafkaLandingRun::Step() {
  LandingProgress progress;
  const auto started = steady_clock::now();
  while (true) {
    if (cancelled.load()) {
      return Status(ErrorCode::kCancelled, "landing " + spec.name + " was stopped");
    }
    TARN_ASSIGN_OR_RETURN(const KafkaBatch batch, source->Next({.bytes_max = kReadBytes,
                                                                .items_max = kMessagesMax,
                                                                .wait_max = WaitFor(started)}));
    was_idle = was_idle || batch.messages.empty();
    TARN_RETURN_IF_ERROR(TakeBatch(batch, progress));
    const bool ends = batch.caught_up && deps.until == ReadUntil::kEnd;
    if (ends || IsFull()) {
      TARN_RETURN_IF_ERROR(Commit(progress));
      progress.caught_up = batch.caught_up;
      if (ends) {
        source->FlushGroup();
      }
      break;
    }
    if (steady_clock::now() - started >= kStepMax) {
      progress.caught_up = batch.caught_up && touched.empty();
      break;
    }
  }
  Report(progress);
  return progress;
}

// What is counted once the batch under way is committed: an attempt that fails reads the rest
// again, and counts it then.
LandingProgress KafkaLandingRun::Counted() const {
  LandingProgress counted;
  counted.newest_event = newest_event;
  for (const auto& [name, target] : targets) {
    const LandingCounts& of_target = target->rows().counts();
    counted.counts.rows += of_target.rows;
    counted.counts.rejected += of_target.rejected;
    counted.counts.skipped += of_target.skipped;
    counted.counts.filtered += of_target.filtered;
    counted.counts.truncates += of_target.truncates;
    counted.counts.bytes += of_target.bytes;
    const format::JsonCounters& json = target->rows().json_counters();
    counted.json_counters.repeated_members += json.repeated_members;
    counted.json_counters.renamed_columns += json.renamed_columns;
    counted.json_counters.ignored_members += json.ignored_members;
    counted.json_counters.nulled_values += json.nulled_values;
    counted.newest_event = std::max(counted.newest_event, target->newest_event);
  }
  return counted;
}

void KafkaLandingRun::ReadLags(LandingProgress& progress, steady_clock::time_point now) {
  const double seconds = std::chrono::duration<double>(now - lags_read).count();
  lags_read = now;
  progress.lags = source->ReadLags();
  broker_lag = 0;
  oldest_behind.reset();
  for (const PartitionLag& lag : progress.lags) {
    *broker_lag += lag.lag;
    if (lag.lag > 0) {
      const Timestamp since = lag.time_ms < 0 ? deps.clock.Now() : FromMicros(lag.time_ms * 1000);
      oldest_behind = std::min(oldest_behind.value_or(since), since);
    }
  }
  const double pace = static_cast<double>(std::exchange(taken, 0)) / std::max(seconds, 0.001);
  behind = *broker_lag >= kBehindMessagesMin &&
           static_cast<double>(*broker_lag) >= kBehindSeconds * pace;
}

void KafkaLandingRun::Report(LandingProgress& progress) {
  int64_t waiting_rows = 0;
  for (const auto& [name, target] : targets) {
    waiting_rows += target->row_count();
  }
  progress.counts = counts;
  progress.json_counters = json_counters;
  progress.newest_event = newest_event;
  const auto now = steady_clock::now();
  const auto every =
      kLagsEvery * static_cast<int64_t>(1 + source->partition_count() / kPartitionsPerLagSecond);
  const bool news = progress.caught_up && broker_lag != 0;
  if (!broker_lag || news || now - lags_read >= every) {
    ReadLags(progress, now);
  }
  progress.behind = behind;
  progress.lag_rows = *broker_lag + waiting_rows;
  progress.behind_since = oldest_behind;
  if (waiting_rows > 0) {
    progress.behind_since = std::min(oldest_behind.value_or(batch_start), batch_start);
  }
}

// Dead letters of a target go to the file of the batch, which is that of all targets.
Status KafkaLandingRun::TakeLetters(KafkaTarget& target) {
  for (DeadLetter& letter : target.rows().TakeDeadLetters()) {
    if (letters == nullptr) {
      letters = std::make_unique<DeadLetterFile>(
          DeadLetterFileOptions{.rejected = datasets.rejected, .landed = batch_start},
          deps.warehouse, deps.uuids);
    }
    TARN_RETURN_IF_ERROR(letters->Add(std::move(letter)));
  }
  return Status::Ok();
}

Status KafkaLandingRun::CloseBatch() {
  for (const auto& [name, target] : targets) {
    TARN_RETURN_IF_ERROR(TakeLetters(*target));
    TARN_RETURN_IF_ERROR(target->HandOver(batch_start));
    TARN_RETURN_IF_ERROR(target->CloseFiles());
  }
  return Status::Ok();
}

// True when the batch is to be a transaction of the dataset: something landed, or messages were
// read behind a gap, which no later one could record in time.
bool KafkaLandingRun::IsRecorded(const KafkaTarget& target) const {
  return target.has_files() ||
         (!target.gaps.empty() && std::any_of(touched.begin(), touched.end(), [&](uint32_t index) {
           return parts[index].target == &target && parts[index].range.messages > 0;
         }));
}

// A range that waits for the transaction that records a gap before it.
bool KafkaLandingRun::IsPassing(const Part& part) const {
  return !part.target->gaps.empty() && !IsRecorded(*part.target);
}

// Where a partition stands behind the batch. Without a transaction its range waits for the next.
StoredOffset KafkaLandingRun::OffsetBehind(uint32_t index) const {
  const Part& part = parts[index];
  const StoredOffset& known = stored.at(part.range.where);
  StoredOffset offset{.first = known.first, .next = part.range.to, .seen = source->seen(index)};
  if (!IsRecorded(*part.target)) {
    offset.recorded = known.recorded_to();
  }
  return offset;
}

Status KafkaLandingRun::WriteCommit(metastore::SqlTransaction& sql,
                                    const std::optional<dataset::StoredFile>& letter_file,
                                    LandingProgress& progress) {
  if (deps.fence) {
    TARN_RETURN_IF_ERROR(deps.fence(sql));
  }
  StoredOffsets offsets;
  for (const uint32_t index : touched) {
    const Part& part = parts[index];
    if (!IsPassing(part)) {
      offsets[part.range.where] = OffsetBehind(index);
    }
  }
  for (const auto& [name, target] : targets) {
    if (!IsRecorded(*target)) {
      continue;
    }
    LandedTopics topics{.ranges = {}, .gaps = target->gaps};
    for (const uint32_t index : touched) {
      if (parts[index].target == target.get()) {
        topics.ranges.push_back(parts[index].range);
        topics.ranges.back().from = stored.at(topics.ranges.back().where).recorded_to();
      }
    }
    topics.ranges.insert(topics.ranges.end(), target->before_gaps.begin(),
                         target->before_gaps.end());
    for (const LostRange& lost : target->gaps) {
      offsets.emplace(lost.where, StoredOffset{.first = lost.to, .next = lost.to});
    }
    TARN_ASSIGN_OR_RETURN(progress.newest, target->WriteCommit(sql, topics));
  }
  if (letter_file) {
    TARN_RETURN_IF_ERROR(CommitDeadLetters(
        sql, deps.datasets,
        {.rejected = datasets.rejected, .file = *letter_file, .by = datasets.by}));
  }
  return WriteOffsets(sql, datasets.landing.ToString(), offsets);
}

Status KafkaLandingRun::Commit(LandingProgress& progress) {
  cut = steady_clock::now();
  was_idle = touched.empty();
  TARN_RETURN_IF_ERROR(CloseBatch());
  if (touched.empty()) {
    return Status::Ok();
  }
  std::optional<dataset::StoredFile> letter_file;
  if (letters != nullptr) {
    const std::unique_ptr<DeadLetterFile> closing = std::move(letters);
    TARN_ASSIGN_OR_RETURN(letter_file, closing->Close());
  }
  CrashPoint("landing-before-commit");
  const LandingProgress counted = Counted();
  TARN_RETURN_IF_ERROR(deps.database.Write([&](metastore::SqlTransaction& sql) -> Status {
    TARN_RETURN_IF_ERROR(WriteCommit(sql, letter_file, progress));
    return deps.on_commit ? deps.on_commit(sql, counted) : Status::Ok();
  }));
  CrashPoint("landing-after-commit");
  const bool any = std::any_of(targets.begin(), targets.end(),
                               [&](const auto& one) { return IsRecorded(*one.second); });
  progress.commits += any ? 1 : 0;
  counts = counted.counts;
  json_counters = counted.json_counters;
  newest_event = counted.newest_event;
  EndBatch();
  return Status::Ok();
}

void KafkaLandingRun::EndBatch() {
  Offsets next;
  std::vector<KafkaTarget*> recorded;
  for (const auto& [name, target] : targets) {
    if (IsRecorded(*target)) {
      recorded.push_back(target.get());
    }
  }
  for (const uint32_t index : touched) {
    Part& part = parts[index];
    if (IsPassing(part)) {
      part.next = part.range.from;
    } else {
      stored[part.range.where] = OffsetBehind(index);
      next[part.range.where] = part.range.to;
    }
    part.in_batch = false;
  }
  source->CommitToGroup(next);
  touched.clear();
  bytes_in_batch = 0;
  for (KafkaTarget* target : recorded) {
    target->Committed();
  }
}

void KafkaLandingRun::Cancel() {
  cancelled.store(true);
  source->Cancel();
}

}  // namespace

std::unique_ptr<LandingRun> MakeKafkaLanding(LandingSpec spec, LandingDatasets datasets,
                                             LandingDeps deps) {
  return std::make_unique<KafkaLandingRun>(std::move(spec), std::move(datasets), std::move(deps));
}

}  // namespace tarn::landing
