"""Writes a systemd unit: one driver that finishes its batch before it stops."""

from __future__ import annotations

from floodmark.supervisors.options import FOR_GOOD, DeployOptions


def unit(options: DeployOptions) -> str:
    """Return `<name>.service`, for /etc/systemd/system or ~/.config/systemd/user."""
    user = [f"User={options.user}"] if options.user else []
    lines = [
        "[Unit]",
        f"Description=Spark stream {options.name}, run by floodmark",
        "After=network-online.target",
        "Wants=network-online.target",
        "# The pauses between starts are enough: an outage may last for hours.",
        "StartLimitIntervalSec=0",
        "",
        "[Service]",
        "Type=exec",
        *user,
        f"WorkingDirectory={_escaped(options.folder)}",
        f"ExecStart={' '.join(_quoted(word) for word in options.run_command())}",
        "Environment=PYTHONUNBUFFERED=1",
        "# SIGTERM goes to the driver alone; what is left after the grace period is killed.",
        "KillMode=mixed",
        f"TimeoutStopSec={options.grace_seconds}",
        "# 0 is finished or stopped, 5 failed for now; the others stay until somebody acts.",
        "Restart=on-failure",
        "RestartSec=30",
        f"RestartPreventExitStatus={' '.join(map(str, FOR_GOOD))}",
        "",
        "[Install]",
        "WantedBy=multi-user.target",
    ]
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    """Double each per cent sign, because it begins a specifier."""
    return text.replace("%", "%%")


def _quoted(word: str) -> str:
    word = _escaped(word).replace("\\", "\\\\").replace('"', '\\"').replace("$", "$$")
    return f'"{word}"' if not word or any(one in word for one in " \t'\"\\;") else word
