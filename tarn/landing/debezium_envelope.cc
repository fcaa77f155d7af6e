#include "tarn/landing/debezium_envelope.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

#include "tarn/format/base64.h"
#include "tarn/format/column_node.h"

namespace tarn::landing {

namespace {

using format::JsonKind;
using format::JsonMember;
using format::JsonValue;
using format::LogicalSchema;
using format::RecordError;
using format::RecordFailure;

// Members of a record or of an event's value that are looked at.
struct ValueMembers {
  JsonValue before, after, source, transaction, op, ts_ms, ts_us, ts_ns;
  JsonValue key, value, topic, schema, payload;
  JsonValue status, id, ddl, table_changes;
  JsonValue flat_op, flat_deleted, flat_lsn, flat_transaction, flat_ts_ms, flat_source_ts_ms;
};

// Members of `source` that are looked at.
struct SourceMembers {
  JsonValue schema, table, collection, db, lsn, tx_id, ts_ms, ts_us, ts_ns;
  JsonValue file, pos, row, gtid, commit_lsn, change_lsn, event_serial_no, scn, commit_scn, ord;
};

template <typename Members>
struct NamedMember {
  std::string_view name;
  JsonValue Members::* member;
};

constexpr std::array<NamedMember<ValueMembers>, 23> kValueMembers = {
    {{"before", &ValueMembers::before},
     {"after", &ValueMembers::after},
     {"source", &ValueMembers::source},
     {"transaction", &ValueMembers::transaction},
     {"op", &ValueMembers::op},
     {"ts_ms", &ValueMembers::ts_ms},
     {"ts_us", &ValueMembers::ts_us},
     {"ts_ns", &ValueMembers::ts_ns},
     {"key", &ValueMembers::key},
     {"value", &ValueMembers::value},
     {"topic", &ValueMembers::topic},
     {"schema", &ValueMembers::schema},
     {"payload", &ValueMembers::payload},
     {"status", &ValueMembers::status},
     {"id", &ValueMembers::id},
     {"ddl", &ValueMembers::ddl},
     {"tableChanges", &ValueMembers::table_changes},
     {"__op", &ValueMembers::flat_op},
     {"__deleted", &ValueMembers::flat_deleted},
     {"__source_lsn", &ValueMembers::flat_lsn},
     {"__source_txId", &ValueMembers::flat_transaction},
     {"__ts_ms", &ValueMembers::flat_ts_ms},
     {"__source_ts_ms", &ValueMembers::flat_source_ts_ms}}};

constexpr std::array<NamedMember<SourceMembers>, 21> kSourceMembers = {
    {{"schema", &SourceMembers::schema},
     {"table", &SourceMembers::table},
     {"collection", &SourceMembers::collection},
     {"db", &SourceMembers::db},
     {"lsn", &SourceMembers::lsn},
     {"txId", &SourceMembers::tx_id},
     {"ts_ms", &SourceMembers::ts_ms},
     {"ts_us", &SourceMembers::ts_us},
     {"ts_ns", &SourceMembers::ts_ns},
     {"file", &SourceMembers::file},
     {"pos", &SourceMembers::pos},
     {"row", &SourceMembers::row},
     {"gtid", &SourceMembers::gtid},
     {"commit_lsn", &SourceMembers::commit_lsn},
     {"change_lsn", &SourceMembers::change_lsn},
     {"event_serial_no", &SourceMembers::event_serial_no},
     {"scn", &SourceMembers::scn},
     {"commit_scn", &SourceMembers::commit_scn},
     {"ord", &SourceMembers::ord},
     {"transaction_id", &SourceMembers::tx_id},
     {"xid", &SourceMembers::tx_id}}};

// Sorts the members of objects into a struct; order of the text rules, the last one wins.
//
// The objects of one stream have their members in one order, so each name is first compared with
// the one that the object before had at the same place.
template <typename Members, size_t kCount>
class MemberSorter {
 public:
  explicit MemberSorter(const std::array<NamedMember<Members>, kCount>& names) : names_(names) {}

  void Sort(JsonValue object, Members& found) {
    found = {};
    size_t place = 0;
    for (const JsonMember member : object.members()) {
      JsonValue Members::* target = nullptr;
      if (place < places_.size() && IsAt(places_[place], member.name)) [[likely]] {
        target = places_[place].member;
      } else {
        target = Find(member.name);
        if (place < kPlacesMax) {
          places_.resize(std::max(places_.size(), place + 1));
          places_[place] = {std::string(member.name), target};
        }
      }
      ++place;
      if (target != nullptr) {
        found.*target = member.value;
      }
    }
  }

 private:
  struct Place {
    std::string name;
    JsonValue Members::* member = nullptr;  // Null: not looked at.
  };
  static constexpr size_t kPlacesMax = 256;

  static bool IsAt(const Place& place, std::string_view name) {
    return place.name.size() == name.size() &&
           format::EqualBytes(place.name.data(), name.data(), name.size());
  }

  JsonValue Members::* Find(std::string_view name) const {
    for (const NamedMember<Members>& named : names_) {
      if (named.name == name) {
        return named.member;
      }
    }
    return nullptr;
  }

  const std::array<NamedMember<Members>, kCount>& names_;
  std::vector<Place> places_;
};

bool Present(JsonValue value) { return value && !value.is_null(); }

std::string_view StringOf(JsonValue value) {
  return value && value.is_string() ? value.string() : std::string_view();
}

std::optional<int64_t> IntegerOf(JsonValue value) {
  if (!value) {
    return std::nullopt;
  }
  if (value.kind() == JsonKind::kNumber) {
    return value.int64();
  }
  const std::string_view text = StringOf(value);
  int64_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || read.ec != std::errc() || read.ptr != text.data() + text.size()) {
    return std::nullopt;
  }
  return number;
}

// A scalar as text: strings as they are, numbers as written.
std::string_view ScalarText(JsonValue value) {
  if (!Present(value)) {
    return {};
  }
  return value.is_string() ? value.string() : value.text();
}

// Appends digits padded with zeros to `width`; text that is no such number as it is.
void AppendPadded(std::string_view digits, size_t width, std::string& out) {
  const bool number =
      !digits.empty() && digits.size() <= width &&
      std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (number) {
    out.append(width - digits.size(), '0');
  }
  out.append(digits);
}

// The digits at the end of a log file's name.
std::string_view FileNumber(std::string_view file) {
  const size_t dot = file.find_last_not_of("0123456789");
  return dot == std::string_view::npos ? file : file.substr(dot + 1);
}

std::optional<int64_t> MicrosOf(JsonValue us, JsonValue ns, JsonValue ms) {
  if (const auto micros = IntegerOf(us); micros.has_value()) {
    return micros;
  }
  if (const auto nanos = IntegerOf(ns); nanos.has_value()) {
    return *nanos / 1000 - (*nanos % 1000 < 0 ? 1 : 0);
  }
  const auto millis = IntegerOf(ms);
  int64_t micros = 0;
  if (!millis.has_value() || __builtin_mul_overflow(*millis, int64_t{1000}, &micros)) {
    return std::nullopt;
  }
  return micros;
}

RecordFailure Bad(std::string text) { return {RecordError::kBadEnvelope, 0, std::move(text)}; }

char OperationOf(std::string_view op) {
  if (op.size() != 1) {
    return 0;
  }
  switch (op[0]) {
    case 'c':
      return 'I';
    case 'u':
      return 'U';
    case 'd':
      return 'D';
    case 'r':
      return 'L';
    case 't':
      return 'T';
    case 'm':
      return 'm';
    default:
      return 0;
  }
}

}  // namespace

struct DebeziumEnvelope::State {
  explicit State(DebeziumEnvelopeOptions given) : options(std::move(given)) {
    const std::string& marker = options.unavailable_value;
    base64_marker = format::EncodeBase64(marker);
    quoted_marker = "\"" + marker + "\"";
    map_marker = "{\"" + marker + "\":\"" + marker + "\"}";
  }

  struct CachedSchema {
    std::string text;
    std::shared_ptr<const LogicalSchema> rows;  // Of the `after` member, else of the whole.
    std::shared_ptr<const LogicalSchema> whole;
  };

  // The parsed form of an embedded schema, by its text.
  const CachedSchema* Schema(JsonValue schema) {
    if (!schema || !schema.is_object()) {
      return nullptr;
    }
    const std::string_view text = schema.text();
    for (size_t i = 0; i < schemas.size(); ++i) {
      const std::string& known = schemas[i]->text;
      if (known.size() == text.size() && memcmp(known.data(), text.data(), text.size()) == 0) {
        if (i > 4) {
          std::rotate(schemas.begin(), schemas.begin() + static_cast<ptrdiff_t>(i),
                      schemas.begin() + static_cast<ptrdiff_t>(i) + 1);
          return schemas.front().get();
        }
        return schemas[i].get();
      }
    }
    if (schemas.size() >= std::max<size_t>(options.schemas_max, 2)) {
      schemas.pop_back();
    }
    auto made = std::make_unique<CachedSchema>();
    made->text = text;
    made->whole = format::ParseConnectSchema(schema);
    made->rows = made->whole;
    const JsonValue fields = schema.Find("fields");
    if (fields && fields.is_array()) {
      for (const JsonValue field : fields.elements()) {
        if (field.is_object() && StringOf(field.Find("field")) == "after") {
          made->rows = format::ParseConnectSchema(field);
        }
      }
    }
    schemas.insert(schemas.begin(), std::move(made));
    return schemas.front().get();
  }

  // Takes {"schema": …, "payload": …} apart.
  static JsonValue Payload(JsonValue value, JsonValue& schema) {
    if (!value || !value.is_object() || value.size() != 2) {
      return value;
    }
    const JsonValue payload = value.Find("payload");
    const JsonValue stated = value.Find("schema");
    if (!payload || !stated) {
      return value;
    }
    schema = stated;
    return payload;
  }

  RecordFailure OpenValue(JsonValue key, JsonValue value, DebeziumEvent& event);
  RecordFailure OpenPayload(const ValueMembers& members, JsonValue payload, DebeziumEvent& event);
  RecordFailure OpenChange(const ValueMembers& members, DebeziumEvent& event);
  static RecordFailure OpenOther(const ValueMembers& members, JsonValue payload,
                                 DebeziumEvent& event);
  RecordFailure OpenFlat(const ValueMembers& members, JsonValue payload, DebeziumEvent& event);
  RecordFailure CheckImages(DebeziumEvent& event, const ValueMembers& members);
  void FindPosition(const SourceMembers& source, DebeziumEvent& event);
  void FindTable(const SourceMembers& source, DebeziumEvent& event);
  void FindUnavailable(DebeziumEvent& event);
  [[nodiscard]] bool IsMarker(std::string_view text) const;
  [[nodiscard]] bool IsUnavailable(JsonValue value) const;
  JsonValue Image(JsonValue value, format::JsonTape& tape);

  DebeziumEnvelopeOptions options;
  std::string base64_marker;
  std::string quoted_marker;
  std::string map_marker;
  std::vector<std::unique_ptr<CachedSchema>> schemas;  // Most recently found ones first, roughly.
  std::string table;
  std::string position;
  format::JsonTape after_tape;  // Images that are text (MongoDB).
  format::JsonTape before_tape;
  MemberSorter<ValueMembers, kValueMembers.size()> record_sorter{kValueMembers};
  MemberSorter<ValueMembers, kValueMembers.size()> value_sorter{kValueMembers};
  MemberSorter<SourceMembers, kSourceMembers.size()> source_sorter{kSourceMembers};
  ValueMembers found_members;
  SourceMembers found_source;
};

bool DebeziumEnvelope::State::IsMarker(std::string_view text) const {
  return text == options.unavailable_value || text == base64_marker || text == quoted_marker ||
         text == map_marker;
}

bool DebeziumEnvelope::State::IsUnavailable(JsonValue value) const {
  switch (value.kind()) {
    case JsonKind::kString:
      return IsMarker(value.string());
    case JsonKind::kArray: {
      // Arrays of numbers carry the bytes of the marker.
      size_t equal_bytes = 0;
      for (const JsonValue element : value.elements()) {
        if (element.is_string() && IsMarker(element.string())) {
          return true;
        }
        if (element.kind() == JsonKind::kNumber && equal_bytes < options.unavailable_value.size() &&
            element.int64() == options.unavailable_value[equal_bytes]) {
          ++equal_bytes;
        }
      }
      return equal_bytes == options.unavailable_value.size() && equal_bytes == value.size();
    }
    case JsonKind::kObject:
      return value.size() == 1 && (*value.members().begin()).name == options.unavailable_value;
    default:
      return false;
  }
}

void DebeziumEnvelope::State::FindUnavailable(DebeziumEvent& event) {
  const JsonValue row = event.row();
  if (!row || !row.is_object()) {
    return;
  }
  for (const JsonMember member : row.members()) {
    if (IsUnavailable(member.value)) {
      event.unavailable.push_back(member.name);
    }
  }
}

void DebeziumEnvelope::State::FindTable(const SourceMembers& source, DebeziumEvent& event) {
  std::string_view space = ScalarText(source.schema);
  space = space.empty() ? ScalarText(source.db) : space;
  std::string_view name = ScalarText(source.table);
  name = name.empty() ? ScalarText(source.collection) : name;
  table.assign(space);
  if (!space.empty() && !name.empty()) {
    table.push_back('.');
  }
  table.append(name);
  event.table = table;
}

void DebeziumEnvelope::State::FindPosition(const SourceMembers& source, DebeziumEvent& event) {
  position.clear();
  if (Present(source.lsn)) {
    AppendPadded(ScalarText(source.lsn), 20, position);
  } else if (Present(source.file)) {
    AppendPadded(FileNumber(ScalarText(source.file)), 20, position);
    position.push_back(':');
    AppendPadded(ScalarText(source.pos), 20, position);
    position.push_back(':');
    AppendPadded(Present(source.row) ? ScalarText(source.row) : "0", 10, position);
  } else if (Present(source.commit_lsn)) {
    position.append(ScalarText(source.commit_lsn)).push_back(':');
    position.append(ScalarText(source.change_lsn)).push_back(':');
    AppendPadded(Present(source.event_serial_no) ? ScalarText(source.event_serial_no) : "0", 20,
                 position);
  } else if (Present(source.scn) || Present(source.commit_scn)) {
    const bool committed = Present(source.commit_scn);
    AppendPadded(ScalarText(committed ? source.commit_scn : source.scn), 20, position);
    position.push_back(':');
    AppendPadded(Present(source.scn) ? ScalarText(source.scn) : "0", 20, position);
  } else if (event.commit_time_micros.has_value()) {
    AppendPadded(std::to_string(*event.commit_time_micros), 20, position);
    if (Present(source.ord)) {
      position.push_back(':');
      AppendPadded(ScalarText(source.ord), 10, position);
    }
  }
  event.position = position;
}

// An image that is an object, or the text of one.
JsonValue DebeziumEnvelope::State::Image(JsonValue value, format::JsonTape& tape) {
  const std::string_view text = StringOf(value);
  if (!text.empty() && tape.Parse(text).ok()) {
    return tape.root();
  }
  return value;
}

RecordFailure DebeziumEnvelope::State::CheckImages(DebeziumEvent& event,
                                                   const ValueMembers& members) {
  event.after = Image(members.after, after_tape);
  event.before = Image(members.before, before_tape);
  if (event.operation == 'D' && !Present(event.before) && event.key && event.key.is_object()) {
    event.before = event.key;  // The source gave no image at all.
    event.row_schema = event.key_schema;
  }
  const JsonValue row = event.row();
  if (event.operation != 'T' && (!row || !row.is_object())) {
    return Bad(std::string("operation ") + event.operation + " without its " +
               (event.operation == 'D' ? "before" : "after") + " image");
  }
  return {};
}

// Values that the source flattened: columns beside members that begin with "__".
RecordFailure DebeziumEnvelope::State::OpenFlat(const ValueMembers& members, JsonValue payload,
                                                DebeziumEvent& event) {
  const bool deleted =
      ScalarText(members.flat_deleted) == "true" || StringOf(members.flat_op) == "d";
  const char operation = OperationOf(StringOf(members.flat_op));
  event.operation = deleted ? 'D' : operation == 0 ? 'U' : operation;
  if (event.operation == 'm') {
    event.kind = DebeziumKind::kMessage;
    return {};
  }
  (deleted ? event.before : event.after) = payload;
  event.commit_time_micros = MicrosOf(
      {}, {}, Present(members.flat_source_ts_ms) ? members.flat_source_ts_ms : members.flat_ts_ms);
  event.transaction = ScalarText(members.flat_transaction);
  SourceMembers source;
  source.lsn = members.flat_lsn;
  FindPosition(source, event);
  // The topic is "<prefix>.<schema>.<table>".
  const size_t dot = event.topic.find('.');
  event.table = dot == std::string_view::npos ? event.topic : event.topic.substr(dot + 1);
  FindUnavailable(event);
  return {};
}

RecordFailure DebeziumEnvelope::State::OpenValue(JsonValue key, JsonValue value,
                                                 DebeziumEvent& event) {
  JsonValue key_schema;
  JsonValue value_schema;
  event.key = Payload(key, key_schema);
  const JsonValue payload = Payload(value, value_schema);
  if (!Present(payload)) {
    event.kind = DebeziumKind::kTombstone;
    return {};
  }
  if (!payload.is_object()) {
    return Bad("the value is no object");
  }
  if (const CachedSchema* schema = Schema(key_schema); schema != nullptr) {
    event.key_schema = schema->whole.get();
  }
  if (const CachedSchema* schema = Schema(value_schema); schema != nullptr) {
    event.row_schema = schema->rows.get();
  }
  value_sorter.Sort(payload, found_members);
  return OpenPayload(found_members, payload, event);
}

// What is no change of a row.
RecordFailure DebeziumEnvelope::State::OpenOther(const ValueMembers& members, JsonValue payload,
                                                 DebeziumEvent& event) {
  if (Present(members.status) && Present(members.id)) {
    event.kind = DebeziumKind::kTransaction;
  } else if (members.ddl || members.table_changes) {
    event.kind = DebeziumKind::kSchemaChange;
  } else if (Present(members.ts_ms) && payload.size() <= 3 && !members.after) {
    event.kind = DebeziumKind::kHeartbeat;
  } else {
    return Bad("no member op, which says what happened");
  }
  return {};
}

RecordFailure DebeziumEnvelope::State::OpenPayload(const ValueMembers& members, JsonValue payload,
                                                   DebeziumEvent& event) {
  if (Present(members.op)) {
    return OpenChange(members, event);
  }
  return Present(members.flat_op) || Present(members.flat_deleted)
             ? OpenFlat(members, payload, event)
             : OpenOther(members, payload, event);
}

RecordFailure DebeziumEnvelope::State::OpenChange(const ValueMembers& members,
                                                  DebeziumEvent& event) {
  event.operation = OperationOf(StringOf(members.op));
  if (event.operation == 0) {
    return Bad("unknown operation " + std::string(members.op.text().substr(0, 40)));
  }
  SourceMembers& source = found_source;
  if (members.source && members.source.is_object()) {
    source_sorter.Sort(members.source, source);
  } else {
    source = {};
  }
  event.commit_time_micros = MicrosOf(source.ts_us, source.ts_ns, source.ts_ms);
  if (!event.commit_time_micros.has_value()) {
    event.commit_time_micros = MicrosOf(members.ts_us, members.ts_ns, members.ts_ms);
  }
  FindTable(source, event);
  FindPosition(source, event);
  event.transaction = ScalarText(Present(source.tx_id) ? source.tx_id : source.gtid);
  if (event.transaction.empty() && members.transaction && members.transaction.is_object()) {
    event.transaction = ScalarText(members.transaction.Find("id"));
  }
  if (event.operation == 'm') {
    event.operation = 0;
    event.kind = DebeziumKind::kMessage;
    return {};
  }
  RecordFailure failure = CheckImages(event, members);
  if (failure.ok()) {
    FindUnavailable(event);
  }
  return failure;
}

DebeziumEnvelope::DebeziumEnvelope(DebeziumEnvelopeOptions options)
    : state_(std::make_unique<State>(std::move(options))) {}

DebeziumEnvelope::~DebeziumEnvelope() = default;

namespace {

void Clear(DebeziumEvent& event) {
  auto unavailable = std::move(event.unavailable);
  unavailable.clear();
  event = DebeziumEvent{.topic = event.topic, .unavailable = std::move(unavailable)};
}

}  // namespace

RecordFailure DebeziumEnvelope::Open(JsonValue key, JsonValue value, DebeziumEvent& event) {
  Clear(event);
  return state_->OpenValue(key, value, event);
}

RecordFailure DebeziumEnvelope::Open(JsonValue record, DebeziumEvent& event) {
  event.topic = {};
  if (!record || !record.is_object()) {
    return Open({}, record, event);
  }
  ValueMembers& members = state_->found_members;
  state_->record_sorter.Sort(record, members);
  if (members.payload && members.schema && record.size() == 2) {
    return Open({}, record, event);
  }
  if (members.value && !members.op && !members.payload) {
    event.topic = StringOf(members.topic);
    return Open(members.key, members.value, event);
  }
  Clear(event);
  return state_->OpenPayload(members, record, event);
}

}  // namespace tarn::landing
