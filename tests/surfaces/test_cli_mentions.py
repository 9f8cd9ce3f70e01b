"""What commands print for people has names in place of the ids of those who are mentioned; their JSON has the texts."""

import json

import pytest
from typer.testing import CliRunner

from roomlore.surfaces.cli.app import app
from roomlore_testkit.case_table import all_cases

SAID = [
    ("m1", "900100", "Ann Lee", "The rope is in my car 绳子在我车里"),
    ("m2", "900200", "陈静", "<@900100> can you bring the rope on Friday? @900300 will drive"),
    ("m3", "900300", "Cy", "yes, I drive"),
    ("m4", "900100", "Ann Lee", "<@!900300> thank you, <@900999> too. We decided that <@900300> drives on Friday."),
    ("m5", "900200", "陈静", "<@900100> and where do we meet on Friday?"),
]
COMMANDS = (
    ["context", "trip", "m5"],
    ["context", "trip", "m5", "--ids"],
    ["threads", "trip"],
    ["threads", "trip", "--ids"],
    ["threads", "trip", "--thread", "m2"],
    ["threads", "trip", "--thread", "m2", "--ids"],
    ["search", "trip", "who brings the rope"],
    ["search", "trip", "who brings the rope", "--conversation"],
    ["digest", "trip", "--since", "2024-05-01"],
    ["digest", "trip", "--since", "2024-05-01", "--prompt"],
    ["links", "correct", "trip", "m5", "--answers", "m2"],
    ["links", "undo", "trip", "m5"],
    ["messages", "delete", "trip", "m2"],
)


@pytest.fixture
def run(tmp_path):
    rows = [
        {"id": name, "room_id": "trip", "sender_id": who, "sender_name": called, "text": text}
        | {"sent_at": f"2024-05-01T12:0{name[1]}:00Z", "mentions": ["900100", "900300"]}
        for name, who, called, text in SAID
    ]
    path = tmp_path / "trip.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")

    def invoke(*arguments):
        database = str(tmp_path / "trip.db")
        return CliRunner().invoke(app, ["--db", database, *arguments], input="n\n", env={"COLUMNS": "200"}).output

    invoke("import", str(path))
    return invoke


def test_people_who_are_mentioned_are_printed_by_name(run):
    with all_cases() as case:
        for command in COMMANDS:
            with case(" ".join(command)):
                printed = run(*command)
                assert "Ann Lee" in printed or "@Cy" in printed
                assert not [one for one in ("@900100", "@900300", "@!900") if one in printed]


def test_json_has_the_texts_as_they_were_written(run):
    assert "<@900100> can you bring" in run("search", "trip", "who brings the rope", "--json")
    assert "<@900100> can you bring" in run("threads", "trip", "--thread", "m2", "--json")
