"""Random changes of keyed rows, and what the tables must show of them."""

import random


class Changes:
    """Makes changes {id, n, gone} for a task `orders` keyed by id, with delete_when gone and
    history, fed from the landing dataset `events`.
    """

    def __init__(self, seed, keys=150):
        self.random = random.Random(seed)
        self.keys = keys
        self.live = {}
        self.versions = 0  # Rows that the history view must have.
        self.number = 0

    def make(self, rows):
        """The next changes, in the order in which a key's must arrive."""
        made = []
        for _ in range(rows):
            self.number += 1
            key = self.random.randint(1, self.keys)
            gone = self.random.random() < 0.2
            made.append({"id": key, "n": self.number, "gone": gone})
            if gone:
                self.versions += self.live.pop(key, None) is not None
            else:
                self.live[key] = self.number
                self.versions += 1
        return made

    def check(self, server):
        rows = server.sql("SELECT id, n FROM orders.orders")
        assert {row["id"]: row["n"] for row in rows} == self.live
        assert len(rows) == len(self.live)
        count = server.sql("SELECT count(*) AS c FROM landing.events")[0]["c"]
        assert count == self.number
        history = server.sql("SELECT count(*) AS c FROM orders.orders__history")[0]["c"]
        assert history == self.versions

    def check_counters(self, server):
        """Both tasks have counted each change once, whatever happened to the server."""
        tasks = {task["task"].split(".")[1]: task for task in server.json("status")["tasks"]}
        for name in ("events", "orders"):
            assert tasks[name]["rows_in"] == self.number, tasks[name]
        assert tasks["events"]["rows_out"] == self.number
