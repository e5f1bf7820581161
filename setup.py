"""The compiled part of the package; everything else is in setup.cfg."""

import os
import sysconfig

from setuptools import Extension, setup

# One build fits every Python from 3.11 on, except builds without the GIL.
STABLE = not sysconfig.get_config_var("Py_GIL_DISABLED")

# Compiled parts and their sources; each comment says what is used without a C compiler.
PARTS = {
    "mrs_suggest/common/text/_lid": ["_lid.c", "_lid_read.c"],  # the package fasttext
    "mrs_datasets/builders/reddit/_lines": ["_lines.c"],  # msgspec for all lines, and the package xxhash
}

setup(
    ext_modules=[
        Extension(
            name.replace("/", "."),
            [f"{os.path.dirname(name)}/{source}" for source in sources],
            depends=["mrs_suggest/common/text/_lid.h"],
            define_macros=[("Py_LIMITED_API", "0x030B0000")] if STABLE else [],
            py_limited_api=STABLE,
            # -g0: without the paths of the machine, so that builds are reproducible.
            extra_compile_args=["-std=c11", "-O3", "-g0", "-fvisibility=hidden"] if os.name == "posix" else [],
            libraries=["m"] if os.name == "posix" else [],
            optional=True,
        )
        for name, sources in PARTS.items()
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if STABLE else {},
)
