"""What doctor, lint and explain print, and the exit status they give."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

import samples
from floodmark import api
from floodmark.cli.main import run
from rules.examples import BROKEN, GOLDEN, golden

FIELDS = ["code", "rule", "severity", "path", "line", "what", "why", "do", "repairable"]
BAD = str(BROKEN / "pipeline" / "misspelt_checkpoint_option.py")


@pytest.fixture
def sales(tmp_path):
    return shutil.copytree(GOLDEN / "3.5/sales-hdfs/checkpoint", tmp_path / "sales")


def json_of(capsys):
    return json.loads(capsys.readouterr().out)


def test_a_sound_checkpoint_exits_0(sales, capsys):
    assert run(["doctor", str(sales)]) == 0
    assert "is sound" in capsys.readouterr().out
    assert run(["doctor", str(sales), "--json", "--read-data"]) == 0
    assert json_of(capsys) == {"findings": [], "sink": None, "not_examined": None}


def test_a_finding_has_the_promised_fields_and_exits_1(sales, capsys):
    (sales / "offsets/1").unlink()
    assert run(["doctor", str(sales), "--json"]) == 1
    (finding,) = json_of(capsys)["findings"]
    assert list(finding) == FIELDS
    assert finding["code"] == "FM101"
    assert finding["rule"] == "commit-without-offset"
    assert finding["path"] == "commits/1"
    assert finding["line"] is None
    assert finding["repairable"] is True


def test_one_reason_for_many_entries_is_said_once(sales, capsys):
    shutil.rmtree(sales / "offsets")
    assert run(["doctor", str(sales)]) == 1
    said = capsys.readouterr().out
    assert said.count("commit-without-offset") == 1
    assert [f"commits/{batch} exists" in said for batch in range(3)] == [True] * 3


def test_a_plan_names_all_that_carries_it_out(sales, tmp_path, capsys):
    (sales / "state/0/1/3.delta").unlink()
    plan = str(tmp_path / "plan.json")
    assert run(["repair", str(sales), "--out", plan]) == 0
    said = capsys.readouterr().out
    assert "Carry it out with --accept repeats --execute." in said
    assert f"Plan it again with --accept repeats --out {plan}" in said
    assert run(["apply", plan, "--execute"]) != 0
    capsys.readouterr()
    assert run(["repair", str(sales), "--accept", "repeats", "--out", plan]) == 0
    said = capsys.readouterr().out
    assert "Carry it out with --execute." in said
    assert f"floodmark apply {plan}" in said


def test_a_plan_ends_with_the_command_that_carries_it_out(sales, capsys):
    (sales / "state/0/1/3.delta").unlink()
    arguments = ["repair", str(sales), "--storage", "token=s3cret"]
    assert run(arguments) == 0
    *_, words, command, hidden = capsys.readouterr().out.splitlines()
    assert words == "Nothing has been changed. Carry it out:"
    assert hidden == "  Put your own value in the place of each ***."
    said = shlex.split(command)
    assert said == ["floodmark", *arguments[:-1], "token=***", "--accept", "repeats", "--execute"]
    assert run([*said[1:2], *said[2:3], *said[5:]]) == 0
    assert "Done." in capsys.readouterr().out


def test_the_text_says_what_why_and_what_to_do(sales, capsys):
    (sales / "commits/2").write_bytes(b"")
    (sales / "commits/.2.crc").unlink()
    assert run(["doctor", str(sales)]) == 1
    out = capsys.readouterr().out
    assert "1 error" in out
    assert "error  empty-log-entry (FM104)\n  commits/2  The entry of batch 2" in out
    assert re.search(r"^  why  A crash", out, re.M)
    assert re.search(r"^  do   floodmark repair \S+\n       By hand: Remove the file", out, re.M)
    assert "floodmark explain FM104" in out
    wrapped = (line for line in out.splitlines() if "floodmark repair" not in line)
    assert all(len(line) <= 100 for line in wrapped)


def test_many_of_a_kind_are_one_paragraph(sales, capsys):
    for file in sales.glob("state/0/*/*.delta"):
        file.write_bytes(b"")
    assert run(["doctor", str(sales)]) == 1
    assert capsys.readouterr().out.count("damaged-state-file") == 1


def test_damage_inside_a_state_file_needs_read_data(sales, capsys):
    path = sales / "state/0/1/3.delta"
    data = bytearray(path.read_bytes())
    data[25] ^= 1
    path.write_bytes(data)
    (sales / "state/0/1/.3.delta.crc").unlink()
    assert run(["doctor", str(sales)]) == 0
    assert "--read-data" in capsys.readouterr().out
    assert run(["doctor", str(sales), "--read-data", "--json"]) == 1
    assert [item["rule"] for item in json_of(capsys)["findings"]] == ["damaged-state-file"]


def test_what_only_reading_finds_is_mended_by_reading(sales, capsys):
    path = sales / "state/0/1/3.delta"
    path.write_bytes(path.read_bytes()[:-30])
    (sales / "state/0/1/.3.delta.crc").unlink()
    assert run(["doctor", str(sales), "--read-data"]) == 1
    said = capsys.readouterr().out
    assert re.search(r"^  do   floodmark repair \S+ --read-data$", said, re.M)
    assert "1 of 1 can be repaired. This shows the plan, and changes nothing:" in said
    assert re.search(r"^  floodmark repair \S+ --read-data$", said, re.M)
    assert run(["repair", str(sales)]) == 0
    assert "State files were not opened; --read-data opens them." in capsys.readouterr().out
    assert run(["repair", str(sales), "--read-data"]) == 0
    said = capsys.readouterr().out
    assert "Repair the checkpoint" in said
    assert "not opened" not in said


def test_the_last_partition_that_is_left_is_not_the_only_one_there_was(sales, tmp_path, capsys):
    shutil.rmtree(sales / "state/0/1")
    assert run(["doctor", str(sales), "--json"]) == 1
    assert [item["rule"] for item in json_of(capsys)["findings"]] == ["state-version-missing"]
    assert run(["upgrade", str(sales), str(tmp_path / "new")]) == 3
    assert "state/0/1 has no state file" in capsys.readouterr().err


def test_without_state_and_notes_the_doctor_does_not_vouch_for_it(sales, capsys):
    shutil.rmtree(sales / "state")
    for verb in ("doctor", "repair"):
        assert run([verb, str(sales)]) == 0
        said = capsys.readouterr().out
        assert "right only for a query without state" in said
        assert "not opened" not in said


@pytest.mark.parametrize(("part", "status"), [("100%", 1), ("10", 2), ("0%", 2), ("x%", 2)])
def test_a_part_of_the_data(sales, part, status):
    path = sales / "state/0/1/3.delta"
    path.write_bytes(path.read_bytes()[:-30])
    assert run(["doctor", str(sales), "--read-data-subset", part]) == status


def test_advice_alone_exits_0(capsys):
    assert run(["doctor", str(GOLDEN / "3.5/async-progress/checkpoint"), "--json"]) == 0
    assert [item["severity"] for item in json_of(capsys)["findings"]] == ["advice"]


def test_what_is_no_checkpoint_exits_3(tmp_path, capsys):
    assert run(["doctor", str(tmp_path / "none")]) == 3
    assert run(["doctor", str(tmp_path)]) == 3
    assert "Traceback" not in capsys.readouterr().err


def test_lint_exits_1_and_says_where(capsys):
    assert run(["lint", BAD]) == 1
    out = capsys.readouterr().out
    assert "misspelt-checkpoint-option (FM201)" in out
    assert f"{BAD}:7" in out
    assert run(["lint", BAD, "--json"]) == 1
    findings = json_of(capsys)["findings"]
    assert list(findings[0]) == FIELDS
    assert findings[0]["path"] == BAD


def test_lint_of_nothing_bad_exits_0(tmp_path, capsys):
    (tmp_path / "fine.py").write_text("x = 1\n")
    assert run(["lint", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "Nothing found.\n"
    assert run(["lint", str(tmp_path), "--format", "github"]) == 0
    assert capsys.readouterr().out == ""


def test_a_name_cannot_give_github_a_command_of_its_own(tmp_path, capsys):
    path = tmp_path / "a,line=1::%0A::error ::b\n::set-env name=x::.py"
    shutil.copy(BAD, path)
    assert run(["lint", str(path), "--json"]) == 1
    findings = json_of(capsys)["findings"]
    assert run(["lint", str(path), "--format", "github"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(findings)
    for line in lines:
        (properties,) = re.findall("^::(?:error|warning|notice) (file=[^:]*)::", line)
        assert re.fullmatch(r"file=[^,]*,line=\d+,title=[^,]*", properties)
        assert "%250A" in properties
    assert run(["lint", str(path), "--format", "sarif"]) == 1
    (one,) = json_of(capsys)["runs"]
    assert len(one["results"]) == len(findings)


def test_lint_does_not_go_through_links_to_folders(tmp_path, capsys):
    """Two links upwards make more paths than anybody can walk."""
    inside = tmp_path / "code/a"
    inside.mkdir(parents=True)
    shutil.copy(BAD, inside / "app.py")
    for name in ("b", "c"):
        (inside / name).symlink_to("..")
    assert run(["lint", str(tmp_path / "code"), "--json"]) == 1
    findings = json_of(capsys)["findings"]
    assert {finding["path"] for finding in findings} == {str(inside / "app.py")}


def test_lint_wants_something_that_is_there(tmp_path, capsys):
    assert run(["lint"]) == 2
    assert run(["lint", str(tmp_path / "none.py")]) == 3
    assert "no such file" in capsys.readouterr().err


def test_github_annotations_are_one_line_each(capsys):
    assert run(["lint", BAD, "--format", "github"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 9
    pattern = r"::error file=[^,]+,line=\d+,title=misspelt-checkpoint-option \(FM201\)::.+"
    assert all(re.fullmatch(pattern, line) for line in lines)


def test_sarif_names_every_rule_it_uses(capsys):
    assert run(["lint", BAD, "--format", "sarif"]) == 1
    document = json_of(capsys)
    assert document["version"] == "2.1.0"
    (ran,) = document["runs"]
    rules = ran["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["FM201"]
    for result in ran["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] == "error"
        place = result["locations"][0]["physicalLocation"]
        assert place["region"]["startLine"] > 0
        assert place["artifactLocation"]["uri"].endswith("misspelt_checkpoint_option.py")


def test_explain(capsys):
    assert run(["explain", "FM201"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("misspelt-checkpoint-option (FM201)\nWhat it finds   writeStream")
    assert 'Instead         .option("checkpointLocation", path)' in out
    assert run(["explain", "--all", "--json"]) == 0
    rules = json_of(capsys)["rules"]
    assert {"FM101", "FM201"} <= {rule["code"] for rule in rules}
    assert run(["explain", "misspelt-checkpoint-option", "--json"]) == 0
    assert json_of(capsys)["rule"] == "misspelt-checkpoint-option"
    assert run(["explain", "FM999"]) == 2
    assert run(["explain"]) == 2
    assert run(["explain", "FM101", "--all"]) == 2


def test_scan_shows_what_the_doctor_sees_at_a_glance(tmp_path):
    samples.write(tmp_path / "sound", golden("3.5/sales-hdfs"))
    tree = golden("3.5/sales-hdfs")
    del tree["state/0/1/3.delta"]
    samples.write(tmp_path / "torn", tree)
    found = {Path(entry.path).name: entry.findings for entry in api.scan([str(tmp_path)])}
    assert found["sound"] == ()
    assert [words.split(":")[0] for words in found["torn"]] == ["FM116 state-version-missing"]


def test_two_forms_at_once_are_refused(capsys):
    assert run(["lint", BAD, "--format", "sarif", "--json"]) == 2
    assert "give one of them" in capsys.readouterr().err
    assert run(["lint", BAD, "--format", "json", "--json"]) == 1


@pytest.mark.parametrize("form", [[], ["--json"], ["--format", "github"], ["--format", "sarif"]])
def test_lint_does_not_repeat_a_password_of_an_address(form, tmp_path, capsys):
    start = '.option("checkpointLocation", "s3a://AKIAX:Hu5h@bucket/ck").start()'
    code = tmp_path / "code.py"
    code.write_text(
        f"df.writeStream.format('delta'){start}\ndf2.writeStream.format('delta'){start}\n"
    )
    assert run(["lint", str(code), *form]) == 1
    printed = "".join(capsys.readouterr())
    assert "s3a://bucket/ck" in printed
    assert "Hu5h" not in printed
