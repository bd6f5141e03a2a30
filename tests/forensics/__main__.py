"""Print what raw images of the disks reveal: python -m tests.forensics [KIND] [SOURCE/].

SOURCE is the folder of another version of this program, which runs instead of this one. Of 200
reports, 100 of them by invitation, the version before pending reports were sealed (cf27217)
revealed in its worst images; this one reveals 0 in every column of every image:

==================  =====  ========  =======  =============  ==============
image               by id  in order  by time  by invitation  outside blocks
==================  =====  ========  =======  =============  ==============
ext4 with SQLite      200       173        -              -             128
PostgreSQL's files     88        87        -              -              44
PostgreSQL's log      199       193      200             27              89
backup                 82         0        -              -              41
==================  =====  ========  =======  =============  ==============
"""

from __future__ import annotations

import sys
from dataclasses import astuple, fields
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.conftest import ROOT
from tests.forensics.images import PLACES, investigate
from tests.forensics.search import Figures


def main(kinds: list[str], source: Path = ROOT) -> None:
    """Print a table of figures for each kind of database."""
    for kind in kinds:
        with TemporaryDirectory() as directory:
            outcome = investigate(kind, Path(directory), source=source)
        print(f"{kind}: 200 reports; {outcome.n_destroyed} private keys were destroyed")
        header, *names = [field.name.replace("_", " ") for field in fields(Figures)]
        print(f"{header:26}" + "".join(f"{name:>15}" for name in names))
        for figures in outcome.figures:
            image, *numbers = astuple(figures)
            print(f"{image:26}" + "".join(f"{number:15}" for number in numbers))


if __name__ == "__main__":
    arguments = sys.argv[1:]
    source = Path(arguments.pop()).absolute() if arguments and "/" in arguments[-1] else ROOT
    main(arguments or list(PLACES), source)
