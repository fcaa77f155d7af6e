"""A server, an engine beside it, and the readers that must agree about a table."""

import json

from iceberg_server import Iceberg

PIPELINE = """\
pipeline: p
sources:
  in: {{type: files, uri: "{uri}"}}
landing:
  events: {{source: in, paths: ["*.jsonl"], content: {{type: json}}, poll: 200ms,
           commit: {{interval: 200ms}}}}
transform:
  orders:
    from: events
    key: [id]
    history: true
    delete_when: "gone"
"""
HISTORY = ("id, n, hdr__store, hdr__operation, hdr__deleted, {} AS from_time, {} AS to_time, "
           "hdr__was_current_from_timestamp IS NULL AS fresh")


def ordered(rows):
    """Rows in an order of their own, each value as it is in JSON."""
    plain = [json.loads(json.dumps(row, default=str)) for row in rows]
    return sorted(plain, key=lambda row: json.dumps(row, sort_keys=True))


def history_of(read, relation, timestamp):
    """The history of the pipeline's table; `timestamp` turns a column into a number."""
    columns = HISTORY.format(timestamp("hdr__from_timestamp"), timestamp("hdr__to_timestamp"))
    return ordered(read(f"SELECT {columns} FROM {relation}"))


class EngineWorld:
    """A server, and every way to look at its tables."""

    def __init__(self, server, engine):
        self.server = server
        self.iceberg = Iceberg(server)
        self.catalog = self.iceberg.catalog()
        self.sql = engine.sql
        self.values = engine.values

    def check(self, name, expected=None):
        """All readers see the same rows of a table, and these if some are given."""
        seen = ordered(self.sql(f"SELECT * FROM {name}"))
        assert ordered(self.server.sql(f"SELECT * FROM {name}")) == seen
        read = self.catalog.load_table(name).scan().to_arrow()
        assert ordered(read.to_pylist()) == seen
        if expected is not None:
            assert [tuple(row.values()) for row in seen] == sorted(
                expected, key=lambda row: json.dumps(
                    dict(zip(read.column_names, row)), sort_keys=True))
        return seen
