"""A Spark session over Iceberg catalogs: the jars of tools/spark, driven through Py4J."""

import json
import pathlib
import sys

from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JJavaError

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import fetch_jars  # noqa: E402

MEMORY = "1500m"
# What Spark's own launcher opens to it on Java 17.
OPENED = ["java.lang", "java.lang.invoke", "java.lang.reflect", "java.io", "java.net", "java.nio",
          "java.util", "java.util.concurrent", "java.util.concurrent.atomic", "jdk.internal.ref",
          "sun.nio.ch", "sun.nio.cs", "sun.security.action", "sun.util.calendar"]


class SparkError(Exception):
    """What Spark or Iceberg said to a statement."""


class Spark:
    """One JVM with one session. Names without a catalog are of the catalog `tarn`."""

    def __init__(self, folder, uri, token):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.log = open(self.folder / "spark.log", "wb")
        self.gateway = self._launch()
        self.jvm = self.gateway.jvm
        try:
            self.session = self._build(uri, token)
        except BaseException:
            self.close()
            raise

    def _launch(self):
        jars = fetch_jars.fetch("spark")
        options = [f"-Xmx{MEMORY}", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
                   "-XX:+IgnoreUnrecognizedVMOptions", "--add-modules=jdk.incubator.vector",
                   f"-Djava.io.tmpdir={self.folder}", f"-Dderby.system.home={self.folder}",
                   "-Djdk.reflect.useDirectMethodHandle=false",
                   "-Dio.netty.tryReflectionSetAccessible=true"]
        options += [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED]
        port, token, self.process = launch_gateway(
            jarpath=str(next(jars.glob("py4j-*.jar"))), classpath=f"{jars}/*",
            java_path=fetch_jars.java(), javaopts=options, die_on_exit=True, enable_auth=True,
            redirect_stdout=self.log, redirect_stderr=self.log, return_proc=True)
        return JavaGateway(gateway_parameters=GatewayParameters(
            port=port, auth_token=token, auto_convert=True))

    def _build(self, uri, token):
        settings = {
            "spark.master": "local[2]",
            "spark.app.name": "tarn",
            "spark.ui.enabled": "false",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.local.dir": self.folder,
            "spark.sql.warehouse.dir": f"file://{self.folder}/own",
            "spark.sql.shuffle.partitions": 2,
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.jsonGenerator.ignoreNullFields": "false",
            "spark.sql.extensions":
                "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
            "spark.sql.defaultCatalog": "tarn",
            **catalog_settings("tarn", uri, token),
        }
        builder = self.jvm.org.apache.spark.sql.SparkSession.builder()
        for name, value in settings.items():
            builder = builder.config(name, str(value))
        return builder.getOrCreate()

    def add_catalog(self, name, uri, token, **more):
        """Another catalog, with another token for example."""
        for key, value in {**catalog_settings(name, uri, token), **more}.items():
            self.session.conf().set(key, str(value))

    def sql(self, statement):
        """Rows of one statement as a list of dictionaries; times are ISO text, bytes base64."""
        try:
            frame = self.session.sql(statement)
            if len(frame.columns()) == 0:
                return []
            return [json.loads(row) for row in frame.toJSON().collectAsList()]
        except Py4JJavaError as error:
            raise SparkError(f"{statement}\n{error.java_exception.toString()}") from None

    def values(self, statement):
        """The rows as tuples."""
        return [tuple(row.values()) for row in self.sql(statement)]

    def close(self):
        try:
            self.gateway.shutdown()
        finally:
            self.process.stdin.close()  # The JVM ends with it.
            self.process.wait(timeout=60)
            self.log.close()


def catalog_settings(name, uri, token):
    """What points Spark at a server. Its own cache of tables would hide what others commit."""
    prefix = f"spark.sql.catalog.{name}"
    return {
        prefix: "org.apache.iceberg.spark.SparkCatalog",
        f"{prefix}.type": "rest",
        f"{prefix}.uri": uri,
        f"{prefix}.token": token,
        f"{prefix}.cache-enabled": "false",
    }
