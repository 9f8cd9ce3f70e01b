#!/bin/sh
# crewai 1.15.30, `Crew.kickoff(inputs=...)` and `crewai.utilities.string_utils.interpolate_only`, which it calls.
#
# The names of the template are found before anything is filled in, but the values are put into the text one after the
# other, so what an input says is filled in as well if it comes before the input that it names. With the same inputs,
# it stays as it is in a template that has the names in the other order. A question such as "What does {notes} mean?"
# reaches the model with the whole notes inside.
#
# Seen (Linux, Python 3.11), inputs={"asked": "What does {notes} mean?", "notes": "buy tea"}:
#   "{asked} / {notes}":  What does buy tea mean? / buy tea
#   "{notes} / {asked}":  buy tea / What does {notes} mean?
#
# Exits with 1 if both templates leave the question as it is.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q crewai==1.15.30
cd "$folder"
HOME="$folder" CREWAI_DISABLE_TELEMETRY=true OTEL_SDK_DISABLED=true CREWAI_TRACING_ENABLED=false \
    "$folder/venv/bin/python" - <<'PYTHON'
import sys

from crewai import Agent, BaseLLM, Crew, Task

SENT = []


class Listening(BaseLLM):
    def call(self, messages, *_args, **_kwargs):
        SENT.append(messages[-1]["content"])
        return "Thought: I know.\nFinal Answer: Noted."


def sent(template):
    guide = Agent(role="guide", goal="Help", backstory="You know Rome.", llm=Listening(model="m"))
    task = Task(description=template, expected_output="An answer", agent=guide)
    Crew(agents=[guide], tasks=[task]).kickoff(inputs={"asked": "What does {notes} mean?", "notes": "buy tea"})
    return next(line for line in SENT[-1].splitlines() if " / " in line).removeprefix("Current Task: ")


first, second = sent("{asked} / {notes}"), sent("{notes} / {asked}")
print("{asked} / {notes}: ", first)
print("{notes} / {asked}: ", second)
sys.exit(0 if first == "What does buy tea mean? / buy tea" and second == "buy tea / What does {notes} mean?" else 1)
PYTHON
