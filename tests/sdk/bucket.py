"""An S3-compatible service for tests, with one bucket."""

import pathlib
import sys
import time

import boto3
import httpx

from process import Process, free_port

NAME = "trainyard"
PREFIX = "some/prefix"


class Bucket:
    """A service that runs until it is closed, with its objects in memory."""

    def __init__(self, folder: pathlib.Path):
        port = free_port()
        self.endpoint = f"http://127.0.0.1:{port}"
        self.url = f"s3://{NAME}/{PREFIX}"
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", port]
        self.process = Process("s3", command, folder / "s3.log", cwd=folder)
        # What the server finds its way by; clients of the bucket use the same.
        self.environment = {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_REGION": "us-east-1",
        }

    def start(self, limit=60.0):
        self.process.start()
        deadline = time.monotonic() + limit
        while not self._ready():
            if not self.process.alive() or time.monotonic() > deadline:
                raise RuntimeError(f"no S3 service:\n{self.process.tail()}")
            time.sleep(0.1)
        self.s3 = boto3.client(
            "s3", endpoint_url=self.endpoint, region_name="us-east-1", aws_access_key_id="key",
            aws_secret_access_key="secret",
        )  # fmt: skip
        self.s3.create_bucket(Bucket=NAME)
        return self

    def _ready(self) -> bool:
        try:
            return httpx.get(self.endpoint, timeout=2).status_code < 500
        except httpx.TransportError:
            return False

    def names(self, start="") -> list[str]:
        """Names relative to the storage."""
        pages = self.s3.get_paginator("list_objects_v2").paginate(Bucket=NAME, Prefix=f"{PREFIX}/{start}")
        found = [item["Key"] for page in pages for item in page.get("Contents", [])]
        return [key.removeprefix(f"{PREFIX}/") for key in found]

    def close(self):
        self.process.kill()
