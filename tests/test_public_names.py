"""What each package offers: `from mrs_suggest import Suggester`, read from its module only when asked for."""

import importlib
import subprocess
import sys

import pytest

PACKAGES = ("mrs_datasets", "mrs_suggest", "mrs_suggest.serving")
HEAVY = ("numpy", "torch", "transformers", "sentence_transformers", "datasets", "pyarrow", "pandas", "scipy", "yaml")


@pytest.mark.parametrize("package", PACKAGES)
def test_every_name_can_be_imported(package: str) -> None:
    module = importlib.import_module(package)
    assert sorted(set(module.__all__)) == sorted(module.__all__)
    for name in module.__all__:
        assert getattr(module, name) is not None
        assert name in dir(module)
        submodule = importlib.util.find_spec(f"{package}.{name}")
        assert submodule is None, "a name of a module, which would stand in for the other once it is imported"
    with pytest.raises(AttributeError, match=f"{package}.*no_such_name"):
        _ = module.no_such_name


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_alone_costs_nothing(package: str) -> None:
    code = f"import sys, {package}; print(*sorted(set({HEAVY}) & set(sys.modules)))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert loaded.split() == []
