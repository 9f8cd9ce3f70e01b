"""The example of the design document, and its Chinese twin."""

import pytest

from recall_facts import count, fact, facts, recall, statements
from roomlore.core.recall.ranking import FactSet
from roomlore.core.recall.recollection import RecallOptions

ENGLISH = (
    ("I am working on a Python project", "With FastAPI and SQLAlchemy", "How do I write the tests?"),
    (
        "Prefers pytest for testing",
        "Expert in Python and FastAPI",
        "Likes type hints in Python",
        "Uses Docker for containerization",
    ),
)
CHINESE = (
    ("我在做一个 Python 项目", "使用 FastAPI 和 SQLAlchemy", "怎么写测试？"),
    ("喜欢用 pytest 写测试", "精通 Python 和 FastAPI", "喜欢在 Python 里写类型注解", "用 Docker 做容器化部署"),
)


@pytest.mark.parametrize(("turns", "known"), [ENGLISH, CHINESE], ids=["en", "zh"])
@pytest.mark.parametrize("docker_first", [True, False])
def test_what_has_nothing_to_do_with_the_project_comes_last(turns, known, docker_first):
    found = recall(facts(*(reversed(known) if docker_first else known)), turns)
    assert statements(found)[0] == known[0]
    assert statements(found)[-1] == known[-1]
    assert [one.relevance for one in found.facts][-1] < 0.05


@pytest.mark.parametrize(("turns", "known"), [ENGLISH, CHINESE], ids=["en", "zh"])
def test_what_does_not_fit_is_docker(turns, known):
    whole = recall(facts(*known), turns)
    found = recall(facts(*known), turns, RecallOptions(max_tokens=whole.tokens - 1))
    assert set(statements(found)) == set(known[:3])


@pytest.mark.parametrize(("turns", "known"), [ENGLISH, CHINESE], ids=["en", "zh"])
def test_the_literal_formula_lets_confidence_drown_relevance(turns, known):
    sure = [fact(number, text, 1.0 if "Docker" in text else 0.4) for number, text in enumerate(known)]
    from_facts = FactSet(sure, count=count)
    assert "Docker" in statements(recall(from_facts, turns, RecallOptions(scale="literal")))[0]
    assert "Docker" not in statements(recall(from_facts, turns))[0]


def test_the_block_to_the_letter():
    turns, known = CHINESE
    assert recall(facts(*known), turns).text == (
        "<memory>\n- 喜欢用 pytest 写测试\n- 精通 Python 和 FastAPI\n- 喜欢在 Python 里写类型注解\n"
        "- 用 Docker 做容器化部署\n</memory>"
    )
