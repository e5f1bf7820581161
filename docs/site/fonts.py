"""The site's fonts: Inter, which lies next to this file, and a part of DejaVu Sans Mono, which matplotlib brings.

The second is for code, because it has the characters that tables in a terminal are drawn with. Both licences go with
the fonts.
"""

from __future__ import annotations

import shutil
from pathlib import Path

# Latin, Greek, Cyrillic, punctuation, arrows, signs of mathematics, box drawing, geometric shapes.
MONO = (range(0x20, 0x530), range(0x2000, 0x2070), range(0x20A0, 0x20C0), range(0x2190, 0x2300), range(0x2500, 0x2600))


def write_fonts(own: Path, folder: Path) -> None:
    """Copy the fonts and licences that lie in `own`, and write the one for code."""
    import matplotlib
    from fontTools import subset

    shutil.copytree(own, folder)
    source = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    shutil.copyfile(source / "LICENSE_DEJAVU", folder / "LICENSE_DEJAVU")
    options = subset.Options(flavor="woff", layout_features=[], name_IDs=["*"])
    options.drop_tables += ["FFTM"]
    font = subset.load_font(str(source / "DejaVuSansMono.ttf"), options)
    chosen = subset.Subsetter(options)
    chosen.populate(unicodes=[number for part in MONO for number in part])
    chosen.subset(font)
    subset.save_font(font, str(folder / "dejavu-mono.woff"), options)
