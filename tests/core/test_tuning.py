"""Fitting the weights of the weighted strategy."""

import pytest

from roomlore.core.errors import InvalidInput
from roomlore.core.models import Signals
from roomlore.core.relevance import RelevanceScorer, Weights
from roomlore.core.tuning import Example, from_feedback, tune

NOTHING = dict.fromkeys(("reply_chain", "user_continuity", "time_decay", "mention_relation", "keyword_overlap"), 0.0)


def signals(**given):
    return Signals(**(NOTHING | given))


def told_by(signal, misleading, targets=40):
    """Targets in which `signal` tells what is relevant and `misleading` points the other way."""
    good = signals(**{signal: 0.9, misleading: 0.1})
    bad = signals(**{signal: 0.2, misleading: 0.9})
    mixed = [
        (good, bad, bad, signals(**{signal: 0.7 + 0.005 * n, misleading: 0.5}), signals(**{misleading: 0.4}))
        for n in range(targets)
    ]
    return [Example(signals=rows, relevant=(1.0, 0.0, 0.0, 1.0, 0.0)) for rows in mixed]


class TestTune:
    def test_finds_the_signal_that_tells(self):
        report = tune(told_by("keyword_overlap", "time_decay"), Weights())
        assert report.improved
        assert report.weights.keyword_overlap > 0.9
        assert report.weights.time_decay < 0.01
        assert report.before.f1 < 0.6
        assert report.after.f1 == report.fitted.f1 == 1.0

    def test_the_report_holds_for_the_strategy_itself(self):
        examples = told_by("keyword_overlap", "time_decay")
        report = tune(examples, Weights())
        scorer = RelevanceScorer(report.weights)
        for example in examples:
            chosen = tuple(float(scorer.total(row) >= report.threshold) for row in example.signals)
            assert chosen == example.relevant

    def test_weights_are_a_partition_of_1(self):
        found = tune(told_by("mention_relation", "reply_chain"), Weights()).weights.normalised()
        assert sum(found) == pytest.approx(1)
        assert min(found) >= 0

    def test_twice_the_same(self):
        examples = told_by("user_continuity", "time_decay")
        assert tune(examples, Weights()) == tune(examples, Weights())

    def test_keeps_what_is_as_good_already(self):
        examples = [
            Example(signals=(signals(reply_chain=1), signals(time_decay=0.3)), relevant=(1.0, 0.0)) for _ in range(20)
        ]
        report = tune(examples, Weights())
        assert not report.improved
        assert report.weights.normalised() == pytest.approx(Weights().normalised())
        assert report.threshold == 0.3
        assert report.before == report.after == report.fitted

    def test_held_out_targets_are_not_learned_from(self):
        """Noise fitted on four fifths must not look good on the last: the labels alternate, the signals do not."""
        examples = [
            Example(
                signals=(signals(time_decay=0.5), signals(time_decay=0.5)), relevant=((1.0, 0.0), (0.0, 1.0))[n % 2]
            )
            for n in range(20)
        ]
        report = tune(examples, Weights())
        assert report.after.f1 == pytest.approx(2 / 3)

    def test_missing_messages_cost_recall(self):
        examples = [
            Example(signals=(signals(reply_chain=1), signals(time_decay=0.2)), relevant=(1.0, 0.0), missing=1)
            for _ in range(20)
        ]
        found = tune(examples, Weights()).before
        assert (found.precision, found.recall, found.f1) == (1.0, 0.5, pytest.approx(2 / 3))

    def test_at_most_max_messages_are_chosen(self):
        rows = (signals(reply_chain=1),) * 3 + (signals(),)
        examples = [Example(signals=rows, relevant=(1.0, 1.0, 1.0, 0.0)) for _ in range(20)]
        assert tune(examples, Weights(), max_messages=2).fitted.selected == 2

    def test_choosing_for_starters_costs_worth(self):
        """Half the targets start something new; their candidates look almost as good."""
        kept = Example(signals=(signals(time_decay=0.9), signals(time_decay=0.8)), relevant=(1.0, 0.0))
        new = Example(signals=(signals(time_decay=0.8), signals(time_decay=0.7)), relevant=(0.0, 0.0))
        report = tune([kept, new] * 10, Weights(), threshold=0.1)
        assert report.before.starters == 2
        assert report.after.starters == 0
        assert report.after.worth == 1


class TestFeedback:
    def test_success_labels_every_message_shown(self):
        assert from_feedback([signals(reply_chain=1), signals()], 0.8).relevant == (0.8, 0.8)

    def test_signals_that_come_with_success_gain(self):
        praised = [from_feedback([signals(mention_relation=1, time_decay=0.2)] * 2, 0.9) for _ in range(15)]
        blamed = [from_feedback([signals(keyword_overlap=1, time_decay=0.3)] * 2, 0.1) for _ in range(15)]
        mixed = [example for pair in zip(praised, blamed, strict=True) for example in pair]
        report = tune(mixed, Weights(mention_relation=0.1, keyword_overlap=0.5), threshold=0.05)
        assert report.weights.mention_relation > 0.9
        assert report.after.starters == 0


class TestBadInput:
    def test_too_few_targets(self):
        with pytest.raises(InvalidInput, match="at least 10 targets"):
            tune(told_by("reply_chain", "time_decay", targets=9), Weights())

    def test_too_few_folds(self):
        with pytest.raises(InvalidInput, match="folds is 1"):
            tune(told_by("reply_chain", "time_decay"), Weights(), folds=1)

    def test_labels_all_alike(self):
        with pytest.raises(InvalidInput, match="All labels are alike"):
            tune([Example(signals=(signals(),), relevant=(1.0,))] * 10, Weights())

    @pytest.mark.parametrize("relevant", [(1.5,), (-0.1,), (float("nan"),)])
    def test_labels_out_of_range(self, relevant):
        with pytest.raises(InvalidInput, match=r"in \[0, 1\]"):
            Example(signals=(signals(),), relevant=relevant)

    def test_labels_and_signals_must_pair(self):
        with pytest.raises(InvalidInput, match="one label for each"):
            Example(signals=(signals(),), relevant=())
