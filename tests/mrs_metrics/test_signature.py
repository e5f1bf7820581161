"""Signatures."""

import subprocess

import pytest

from mrs_metrics import signature as module
from mrs_metrics.signature import signature, with_unit


def test_fields_keep_their_order_and_none_is_left_out(monkeypatch):
    monkeypatch.setattr(module, "package_version", lambda: "1.2")
    monkeypatch.setattr(module, "_commit", lambda: "+g1234567")
    found = signature("m", b=1, a=None, c=True, d="x")
    assert found == "m|b:1|c:yes|d:x|version:1.2+g1234567"
    assert with_unit(found, "thread") == "m|b:1|c:yes|d:x|unit:thread|version:1.2+g1234567"


def test_the_version_of_a_clone_has_its_commit(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "__file__", str(tmp_path / "mrs_metrics" / "signature.py"))
    assert module._commit.__wrapped__() == "", "a release"
    who = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    for command in (["init", "-q"], [*who, "commit", "-q", "--allow-empty", "-m", "x"]):
        subprocess.run(["git", "-C", str(tmp_path), *command], check=True)
    head = subprocess.run(["git", "-C", str(tmp_path), "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    assert module._commit.__wrapped__() == f"+g{head.stdout[:7]}"


def test_version_falls_back_where_the_package_is_not_installed(monkeypatch):
    monkeypatch.setattr(module, "DISTRIBUTION", "a-package-that-nobody-has-installed")
    assert signature("m").startswith(f"m|version:{module.FALLBACK_VERSION}")


@pytest.mark.parametrize("fields", [{"a": "x|y"}, {"a": ""}, {"version": "1"}])
def test_ambiguous_fields_are_refused(fields):
    with pytest.raises(ValueError, match="signature"):
        signature("m", **fields)
