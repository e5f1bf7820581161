"""The software bill of materials: the packages of the base installation, as CycloneDX 1.6 JSON."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from cyclonedx.builder.this import this_component
from cyclonedx.factory.license import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from installed_licences import PROJECT, Brought
from packageurl import PackageURL
from two_builds import sha256

SCHEMA = SchemaVersion.V1_6


def write_bill(base: dict[str, Brought], files: dict[str, Path], epoch: int, target: Path) -> list[str]:
    """Write the bill of the built files beside them; the same input gives the same bytes.

    Args:
        base: the packages of the base installation, the project among them, as they are installed here.
        files: name -> path of wheel and source distribution.
        epoch: seconds since 1970.

    Returns:
        A sentence if the bill does not follow its schema.
    """
    parts = {name: _component(one) for name, one in base.items()}
    ours = parts[PROJECT]
    ours.scope = None
    for name, path in files.items():
        ours.properties.add(Property(name=f"mrs-suggest:file:{name}", value=sha256(path.read_bytes())))
    ours.properties.add(Property(name="mrs-suggest:setuptools", value=metadata.version("setuptools")))
    (wheel,) = (path for name, path in files.items() if name.endswith(".whl"))
    ours.hashes.add(HashType(alg=HashAlgorithm.SHA_256, content=sha256(wheel.read_bytes())))
    bill = Bom(components=[part for name, part in parts.items() if name != PROJECT])
    bill.metadata.component = ours
    bill.metadata.timestamp = datetime.fromtimestamp(epoch, UTC)
    bill.metadata.tools.components.add(this_component())
    bill.serial_number = uuid.uuid5(uuid.NAMESPACE_URL, sha256(wheel.read_bytes()))
    for name, one in base.items():
        bill.register_dependency(parts[name], [parts[need] for need in one.needs if need in parts])
    text = make_outputter(bill, OutputFormat.JSON, SCHEMA).output_as_string(indent=2)
    target.write_text(text + "\n", encoding="utf-8")
    problem = JsonStrictValidator(SCHEMA).validate_str(text)
    return [f"{target.name}: does not follow CycloneDX's schema ({str(problem).splitlines()[0]})."] if problem else []


def _component(one: Brought) -> Component:
    made = LicenseFactory()
    return Component(
        name=one.name,
        version=one.version,
        type=ComponentType.LIBRARY,
        scope=ComponentScope.REQUIRED,
        purl=PackageURL("pypi", name=one.name, version=one.version),
        bom_ref=f"pkg:pypi/{one.name}@{one.version}",
        licenses=[made.make_from_string(one.licence)] if one.licence != "unknown" else [],
    )
