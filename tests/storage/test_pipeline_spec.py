"""A pipeline's specification is a stranger's file: what it names lies below its own folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from floodmark import api
from floodmark.errors import MalformedFile
from floodmark.storage.pipeline_spec import definition_files, read_pipeline_spec


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project beside a folder that is not its own."""
    for place in ("project/code/deep", "elsewhere"):
        (tmp_path / place).mkdir(parents=True)
    for name in ("project/code/a.py", "project/code/deep/b.sql", "elsewhere/secret.py"):
        (tmp_path / name).write_text("")
    return tmp_path / "project"


def spec(folder: Path, *includes: str, storage: str = "file:///s") -> Path:
    globs = "".join(f"  - glob: {{include: {one!r}}}\n" for one in includes)
    libraries = f"libraries:\n{globs}" if includes else ""
    (folder / "p.yml").write_text(f"name: p\nstorage: {storage!r}\n{libraries}")
    return folder / "p.yml"


def found(path: Path) -> list[str]:
    files = definition_files(read_pipeline_spec(str(path)))
    return [str(one.relative_to(path.parent)) for one in files]


def test_files_and_folders_below_it(project: Path) -> None:
    assert found(spec(project, "code/**")) == ["code/a.py", "code/deep/b.sql"]
    assert found(spec(project, "code/deep/**", "code/a.py")) == ["code/deep/b.sql", "code/a.py"]
    assert found(spec(project, "nothing/**", "none.py")) == []


@pytest.mark.parametrize(
    ("link", "to", "include"),
    [
        ("code/linked.py", "../../elsewhere/secret.py", "code/**"),
        ("code/linked.py", "../../elsewhere/secret.py", "code/linked.py"),
        ("linked", "../elsewhere", "linked/**"),
        ("linked", "../elsewhere", "linked/secret.py"),
        ("code/far", "/", "code/far/etc/hostname.py"),
    ],
)
def test_a_link_that_leads_out_of_the_project(
    link: str, to: str, include: str, project: Path
) -> None:
    (project / link).symlink_to(to)
    path = spec(project, include)
    if include.endswith("hostname.py"):
        assert found(path) == []  # there is no such file; nothing of the disk is listed
        return
    with pytest.raises(MalformedFile, match="not below the specification's folder") as refused:
        found(path)
    assert "elsewhere/secret.py" in refused.value.why
    with pytest.raises(MalformedFile):
        api.lint(str(path))


def test_a_link_inside_the_project_is_read_and_one_in_a_circle_ends(project: Path) -> None:
    (project / "code/again.py").symlink_to("a.py")
    (project / "code/circle").symlink_to("..")
    (project / "code/nowhere.py").symlink_to("none.py")
    assert found(spec(project, "code/**")) == ["code/a.py", "code/again.py", "code/deep/b.sql"]


def test_a_specification_that_is_a_link_means_its_own_folder(project: Path) -> None:
    """As Spark's runner has it."""
    other = project.parent / "other"
    (other / "code").mkdir(parents=True)
    (other / "code/mine.py").write_text("")
    spec(project, "code/**")
    (other / "p.yml").symlink_to(project / "p.yml")
    assert found(other / "p.yml") == ["code/mine.py"]


@pytest.mark.parametrize(
    "include",
    [
        "/etc/**",
        "../elsewhere/**",
        "code/../../elsewhere/secret.py",
        "*",
        "**",
        "code/*.py",
        "**/code/**",
        "**/**/**/**/**",
        "co[d]e/**",
        "code/**/*.py",
        ".",
        "./",
        "x" * 5000,
    ],
)
def test_globs_that_lead_out_or_that_the_runner_refuses(include: str, project: Path) -> None:
    with pytest.raises(MalformedFile) as refused:
        found(spec(project, include))
    assert "p.yml" in refused.value.what


def test_what_is_no_file_of_definitions(project: Path) -> None:
    with (project / "code/large.py").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(MalformedFile, match="larger than 16 megabytes"):
        found(spec(project, "code/**"))


@pytest.mark.parametrize("storage", ["data", "./data", "../data", "file:data"])
def test_a_relative_storage(storage: str, project: Path) -> None:
    for verb in (api.flows, lambda path: list(api.scan(path))):
        with pytest.raises(MalformedFile, match="is relative") as refused:
            verb(str(spec(project, storage=storage)))
        assert "storage: file:///" in refused.value.do
