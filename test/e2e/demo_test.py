"""The demo's page says what it should."""

import demo


def test_the_page(server, capsys):
    demo.run(server)
    page = capsys.readouterr().out
    for text in ("a@example.com", "e@example.com", "CURRENT", "PRIOR", "SKU-2"):
        assert text in page, page


def test_rows_behind_the_page(server, capsys):
    demo.run(server)
    capsys.readouterr()
    ids = [row["id"] for row in server.sql("SELECT id FROM customers.customers ORDER BY id")]
    assert ids == [2, 4, 5, 10]
    deleted = server.sql("SELECT id FROM customers.customers__history WHERE hdr__deleted")
    assert [row["id"] for row in deleted] == [1]
    items = server.sql("SELECT order_id, line_no, qty, price FROM order_items.order_items "
                       "ORDER BY order_id, line_no")
    assert items == [{"order_id": 1, "line_no": 1, "qty": 3, "price": 9.99},
                     {"order_id": 1, "line_no": 2, "qty": 1, "price": 5.00}]
