#include "tarn/pipeline/pipeline_schema.h"

namespace tarn::pipeline {

namespace {

constexpr std::string_view kSchema = R"json({
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "title": "tarn pipeline file",
  "type": "object",
  "required": ["pipeline"],
  "additionalProperties": false,
  "properties": {
    "pipeline": {"$ref": "#/$defs/name", "description": "Name of the pipeline."},
    "project": {"type": "string", "default": "default"},
    "sources": {
      "type": "object",
      "additionalProperties": {"$ref": "#/$defs/source"},
      "description": "Where records come from. ${NAME} stands for a variable of the environment."
    },
    "landing": {
      "type": "object",
      "propertyNames": {"$ref": "#/$defs/name"},
      "additionalProperties": {"$ref": "#/$defs/landing"}
    },
    "transform": {
      "type": "object",
      "propertyNames": {"$ref": "#/$defs/name"},
      "additionalProperties": {"$ref": "#/$defs/transform"}
    }
  },
  "$defs": {
    "name": {"type": "string", "pattern": "^[a-z0-9_-]{1,200}$"},
    "names": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
    "integer": {"anyOf": [{"type": "integer"}, {"type": "string", "pattern": "^[0-9_]+$"}]},
    "duration": {
      "type": "string",
      "pattern": "^(off|[0-9]+(ms|s|m|h|d))$",
      "description": "200ms 5s 10m 2h 7d off"
    },
    "size": {
      "anyOf": [{"type": "integer"}, {"type": "string"}],
      "description": "Bytes, or 64KiB 128MiB 1GiB."
    },
    "share": {
      "anyOf": [{"$ref": "#/$defs/integer"}, {"type": "string", "pattern": "^[0-9.]+%$"}]
    },
    "policy": {"enum": ["apply", "ignore", "suspend_table", "stop_task"]},
    "source": {
      "type": "object",
      "required": ["type"],
      "additionalProperties": false,
      "properties": {
        "type": {"enum": ["files", "kafka"]},
        "uri": {"type": "string", "description": "file:///folder"},
        "brokers": {"$ref": "#/$defs/names", "description": "Of Kafka: host:port."},
        "client": {
          "type": "object",
          "additionalProperties": {"type": ["string", "integer", "boolean"]},
          "description": "Properties of librdkafka, such as security.protocol."
        }
      }
    },
    "landing": {
      "type": "object",
      "required": ["source"],
      "additionalProperties": false,
      "properties": {
        "schema": {"type": "string", "default": "landing"},
        "source": {"type": "string"},
        "paths": {
          "$ref": "#/$defs/names",
          "description": "Relative to uri: * (not across /), <yyyy> <MM> <dd> <HH> <mm>."
        },
        "exclude": {"$ref": "#/$defs/names"},
        "max_record": {"$ref": "#/$defs/size"},
        "process_files_from": {"type": "string", "description": "earliest, now or a duration."},
        "look_back": {"$ref": "#/$defs/duration"},
        "future": {"enum": ["wait", "read"]},
        "on_changed": {"enum": ["report", "reload"]},
        "delete_after_load": {"type": "boolean"},
        "move_to": {"type": "string"},
        "poll": {"$ref": "#/$defs/duration"},
        "topics": {"$ref": "#/$defs/names", "description": "Of Kafka; % stands for anything."},
        "exclude_topics": {"$ref": "#/$defs/names"},
        "one_dataset": {"type": "boolean"},
        "start": {"type": "string", "description": "earliest, now or a time."},
        "tombstone": {"enum": ["auto", "delete", "reject"]},
        "on_lost_range": {"enum": ["stop", "continue"]},
        "on_new_topic": {"enum": ["apply", "ignore"]},
        "key_columns": {
          "type": "object",
          "additionalProperties": false,
          "properties": {
            "format": {"enum": ["json", "string"]},
            "names": {"$ref": "#/$defs/names"}
          }
        },
        "content": {"$ref": "#/$defs/content"},
        "columns": {
          "type": "object",
          "additionalProperties": {"type": "string"},
          "description": "Declared types by column."
        },
        "commit": {
          "type": "object",
          "additionalProperties": false,
          "properties": {
            "rows": {"$ref": "#/$defs/integer"},
            "bytes": {"$ref": "#/$defs/size"},
            "interval": {"$ref": "#/$defs/duration"}
          }
        },
        "on_bad_record": {"enum": ["reject", "stop", "skip"]}
      }
    },
    "content": {
      "type": "object",
      "additionalProperties": false,
      "properties": {
        "type": {"enum": ["json"]},
        "envelope": {"enum": ["none", "debezium"]},
        "tables": {"$ref": "#/$defs/names"},
        "cdc_before": {"enum": ["key", "full", "off"]},
        "track_absent": {"const": false},
        "numbers": {"enum": ["exact", "double"]},
        "infer_times": {"type": "boolean"}
      }
    },
    "transform": {
      "type": "object",
      "required": ["from"],
      "additionalProperties": false,
      "properties": {
        "from": {"$ref": "#/$defs/names", "description": "Landing tasks."},
        "schema": {"type": "string"},
        "internal_schema": {"type": "string"},
        "prefix": {"type": "string"},
        "mode": {"enum": ["merge", "append"]},
        "key": {"$ref": "#/$defs/names"},
        "null_keys": {"enum": ["reject", "allow"]},
        "history": {"type": "boolean"},
        "history_suffix": {"type": "string"},
        "soft_delete": {"type": "boolean"},
        "delete_when": {"type": "string"},
        "event_time": {"type": "string"},
        "partial": {"const": "replace"},
        "where": {"type": "string"},
        "columns": {
          "type": "object",
          "additionalProperties": {
            "anyOf": [
              {"type": "string"},
              {
                "type": "object",
                "additionalProperties": false,
                "properties": {
                  "expr": {"type": "string"},
                  "type": {"type": "string"},
                  "hash": {"type": "boolean"}
                }
              }
            ]
          }
        },
        "only": {"type": "boolean"},
        "drop": {"$ref": "#/$defs/names"},
        "rename": {"type": "object", "additionalProperties": {"type": "string"}},
        "nested": {"enum": ["expand", "keep"]},
        "empty_arrays": {"enum": ["keep", "drop"]},
        "zip": {"type": "boolean"},
        "expect": {
          "type": "object",
          "additionalProperties": {
            "type": "object",
            "required": ["check"],
            "additionalProperties": false,
            "properties": {
              "check": {"type": "string"},
              "action": {"enum": ["warn", "drop", "reject", "stop"]}
            }
          }
        },
        "on_cast_error": {"enum": ["reject", "null"]},
        "partition_by": {"$ref": "#/$defs/names"},
        "sort_by": {"$ref": "#/$defs/names"},
        "format_version": {"const": 2},
        "table_properties": {"type": "object"},
        "batch": {
          "type": "object",
          "additionalProperties": false,
          "properties": {
            "rows": {"$ref": "#/$defs/integer"},
            "bytes": {"$ref": "#/$defs/size"}
          }
        },
        "apply": {
          "type": "object",
          "additionalProperties": false,
          "properties": {
            "rows": {"$ref": "#/$defs/share"},
            "min_rows": {"$ref": "#/$defs/integer"},
            "bytes": {"$ref": "#/$defs/size"},
            "files": {"$ref": "#/$defs/integer"},
            "max_age": {"$ref": "#/$defs/duration"},
            "at_stop": {"type": "boolean"}
          }
        },
        "publish": {"enum": ["applied", "none"]},
        "case_sensitive": {"type": "boolean"},
        "keep_changes": {"$ref": "#/$defs/duration"},
        "view_headers": {"$ref": "#/$defs/names"},
        "snapshots": {
          "type": "object",
          "additionalProperties": false,
          "properties": {
            "max_age": {"$ref": "#/$defs/duration"},
            "min_keep": {"$ref": "#/$defs/integer"},
            "max_count": {"$ref": "#/$defs/integer"}
          }
        },
        "schema_evolution": {
          "type": "object",
          "additionalProperties": false,
          "properties": {
            "add_column": {"$ref": "#/$defs/policy"},
            "add_struct_field": {"$ref": "#/$defs/policy"},
            "change_column_type": {"$ref": "#/$defs/policy"},
            "drop_column": {"$ref": "#/$defs/policy"},
            "drop_table": {"const": "ignore"},
            "truncate_table": {"const": "ignore"}
          }
        },
        "memory": {"$ref": "#/$defs/size"}
      }
    }
  }
}
)json";

}  // namespace

std::string_view PipelineSchema() { return kSchema; }

}  // namespace tarn::pipeline
