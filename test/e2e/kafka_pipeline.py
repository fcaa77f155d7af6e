"""Pipeline files over a Kafka broker, and what must hold of everything that they land."""

import itertools
import json
import textwrap

SQL_EXACT = ("SELECT count(*) AS rows, count(DISTINCT hdr__kafka_topic || '/' || "
             "hdr__kafka_partition || '/' || hdr__kafka_offset) AS messages FROM landing.events")

names = (f"t{number}" for number in itertools.count())


def new_name():
    """A name for a topic, or the beginning of several, that no other test of this run has."""
    return next(names)


def write_pipeline(place, address, landing, transform="", source="", name="k"):
    """A file with the landing task `events` over one Kafka source; returns its path."""
    file = place / f"{name}.yaml"
    text = f"""\
pipeline: {name}
sources:
  bus:
    type: kafka
    brokers: ["{address}"]
{textwrap.indent(textwrap.dedent(source), "    ")}
landing:
  events:
    source: bus
{textwrap.indent(textwrap.dedent(landing), "    ")}
"""
    if transform:
        text += "transform:\n" + textwrap.indent(textwrap.dedent(transform), "  ")
    file.write_text(text)
    return file


def landed(server, table="landing.events"):
    """Rows that have landed; fails when a message came twice."""
    found = server.sql(SQL_EXACT.replace("landing.events", table))[0]
    assert found["rows"] == found["messages"], found
    return found["rows"]


def letters_of(server, columns='error_code, source, "position"', dataset="events"):
    return server.sql(f'SELECT {columns} FROM landing.{dataset}__rejected ORDER BY "position"')


def text_of(record):
    return json.dumps(record, separators=(",", ":")).encode()


def replay(broker, file, prefix):
    """Sends captured Debezium events, each to its topic, whose first word becomes `prefix`."""
    records = [json.loads(line) for line in file.read_text().splitlines()]
    topics = {record["topic"] for record in records}
    renamed = {topic: prefix + topic[topic.index("."):] for topic in topics}
    for topic in renamed.values():
        broker.create_topic(topic)
    with broker.producer() as sender:
        for record in records:
            headers = [(header["key"], text_of(header["value"]))
                       for header in record.get("headers", [])]
            key, value = record["key"], record["value"]
            sender.send(renamed[record["topic"]], value and text_of(value),
                        key=key and text_of(key), headers=headers)
    return len(records)
