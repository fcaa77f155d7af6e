"""Other implementations reading tarn's tables, unmodified."""


def read_with_pyiceberg(server, table):
    """Rows of `namespace.table` as PyIceberg sees them through the catalog."""
    from pyiceberg.catalog.rest import RestCatalog

    catalog = RestCatalog("tarn", uri=server.url + "/iceberg", token=server.token())
    return catalog.load_table(table).scan().to_arrow().to_pylist()


def duckdb_with_iceberg():
    """A DuckDB connection with its Iceberg extension, from the installed packages."""
    import importlib.util
    import pathlib

    import duckdb

    connection = duckdb.connect(config={"autoinstall_known_extensions": False,
                                        "autoload_known_extensions": False})
    for name in ("avro", "httpfs", "iceberg"):
        package = importlib.util.find_spec("duckdb_extension_" + name)
        folder = pathlib.Path(package.submodule_search_locations[0])
        file = next(folder.glob(f"extensions/*/{name}.duckdb_extension"))
        connection.execute(f"LOAD '{file}'")
    return connection


def read_with_duckdb(server, table):
    """Rows of `namespace.table` as DuckDB sees them through the catalog."""
    connection = duckdb_with_iceberg()
    connection.execute(
        f"CREATE SECRET tarn (TYPE ICEBERG, TOKEN '{server.token()}')")
    connection.execute(
        f"ATTACH 'default' AS tarn (TYPE ICEBERG, ENDPOINT '{server.url}/iceberg', SECRET tarn)")
    return connection.execute(f"SELECT * FROM tarn.{table}").to_arrow_table().to_pylist()
