"""Takes the terminal pictures of the documents: docs/pictures/terminal-*.svg.

    python scripts/terminal_pictures.py

Each command runs in a terminal of its own, over checkpoints that real Sparks wrote
(tests/golden); what it prints, with its colours, becomes an SVG.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import SVG_EXPORT_THEME
from rich.text import Text

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from terminals import on_a_terminal  # noqa: E402

PICTURES = ROOT / "docs" / "pictures"
GOLDEN = ROOT / "tests" / "golden" / "4.2"
COLUMNS = 96
FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace"
_LONG_AGO = 1_794_734_400
"""Some seconds after the last batch of these checkpoints."""
# Picture → the command, as a reader types it.
SHOWN = {
    "inspect": "floodmark inspect checkpoints/orders",
    "state": "floodmark state checkpoints/totals --limit 5",
    "doctor": "floodmark doctor checkpoints/damaged",
    "repair": "floodmark repair checkpoints/damaged",
    "upgrade": "floodmark upgrade checkpoints/totals checkpoints/totals-v2",
}


def prepare(folder: Path) -> None:
    """Checkpoints with the names that the pictures show."""
    for name, origin in (
        ("orders", "in-flight"),
        ("totals", "sales-hdfs"),
        ("damaged", "sales-hdfs"),
    ):
        shutil.copytree(GOLDEN / origin / "checkpoint", folder / "checkpoints" / name)
    damaged = folder / "checkpoints" / "damaged"
    newest = max((damaged / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    newest.write_text("")
    for path in folder.rglob("*"):
        os.utime(path, (_LONG_AGO, _LONG_AGO))  # nobody runs on it any more


def printed(command: list[str], folder: Path) -> str:
    """What the command prints to a terminal of our width, with its colours."""
    colours = {"TERM": "xterm-256color", "TZ": "UTC", "COLUMNS": str(COLUMNS)}
    os.environ.pop("NO_COLOR", None)
    text: str = on_a_terminal(command, folder, COLUMNS, **colours)
    return text.replace("\r\n", "\n")


def picture(name: str, command: str, folder: Path) -> str:
    words = command.split()
    program = str(Path(sys.executable).with_name("floodmark"))
    text = printed([program, *words[1:]], folder)
    console = Console(record=True, width=COLUMNS + 2, file=open(os.devnull, "w"))  # noqa: SIM115
    console.print(Text(f"$ {command}\n", style="bold"))
    console.print(Text.from_ansi(text))
    drawn = console.export_svg(
        title="", theme=SVG_EXPORT_THEME, unique_id=f"t-{name}", code_format=_frame()
    )
    return drawn.replace("Fira Code", FONT)


def _frame() -> str:
    """rich's frame without the fonts that it would fetch from elsewhere."""
    from rich._export_format import CONSOLE_SVG_FORMAT

    before, _, rest = CONSOLE_SVG_FORMAT.partition("@font-face")
    *_, after = rest.rpartition("@font-face")
    return before + after.partition("}}")[2].lstrip()


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        prepare(Path(place))
        for name, command in SHOWN.items():
            path = PICTURES / f"terminal-{name}.svg"
            path.write_text(picture(name, command, Path(place)))
            print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
