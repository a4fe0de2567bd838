"""Certificates as they go wrong: of the past, for another host, none at all."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.receiver import Certificate

GARBAGE = "-----BEGIN CERTIFICATE-----\nnothing\n-----END CERTIFICATE-----\n"
OUTDATED = ("-startdate", "20200101000000Z", "-enddate", "20200102000000Z")
CA = """
[ca]
default_ca = only
[only]
new_certs_dir = {folder}
database = {folder}/{name}.txt
default_md = sha256
serial = {folder}/{name}.srl
policy = any
[any]
commonName = supplied
"""


def openssl(*words: str) -> None:
    command = shutil.which("openssl") or "openssl"
    subprocess.run([command, *words], check=True, capture_output=True)


def issued(
    folder: Path,
    name: str,
    *,
    outdated: bool = False,
    host: str = "IP:127.0.0.1",
    by: Certificate | None = None,
) -> Certificate:
    """Make a certificate, its own authority unless it is `by` one; of the past, where wanted.

    By `openssl ca`, as only the newest `openssl x509` takes dates.
    """
    made = Certificate(folder / f"{name}.pem", folder / f"{name}.key")
    request, extension, config = (folder / f"{name}.{end}" for end in ("csr", "ext", "cnf"))
    extension.write_text(f"subjectAltName={host}\nbasicConstraints=CA:{str(not by).upper()}\n")
    config.write_text(CA.format(folder=folder, name=name))
    (folder / f"{name}.txt").write_text("")
    words = ["req", "-new", "-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    openssl(*words, "-subj", f"/CN={name}", "-keyout", str(made.key), "-out", str(request))
    words = ["ca", "-batch", "-notext", "-create_serial", "-config", str(config)]
    words += ["-in", str(request), "-extfile", str(extension), "-out", str(made.certificate)]
    words += ["-cert", str(by.certificate)] if by else ["-selfsign"]
    words += ["-keyfile", str((by or made).key)]
    openssl(*words, *(OUTDATED if outdated else ("-days", "1")))
    return made
