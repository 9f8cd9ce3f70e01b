"""What the signs of `roomlore.core.far` count for, as `python -m training.train_far` prints it.

Fitted to questions asked later, to messages of talks that need nothing far, and to own questions; see
docs/explanation/asked-later.md for how each set does by models that were fitted without it.
"""

NEED_WEIGHTS = (
    1.56,  # pause
    1.75,  # started
    1.29,  # question
    1.74,  # fact
    -0.75,  # general
    1.80,  # remembering
    0.87,  # happened
    2.21,  # standing
    2.05,  # told
    2.64,  # particular
    0.25,  # own
    -0.76,  # spoken_to
    2.95,  # mention
    -1.12,  # addressed
    0.93,  # time
    6.05,  # dialogue
    -1.34,  # length
    0.31,  # long
    -2.54,  # code
    -1.42,  # reply
    -5.88,  # constant
)
"""Of `NEED`, and a constant."""

EVIDENCE_WEIGHTS = (
    -0.75,  # place
    2.66,  # share
    -0.83,  # answered
    0.38,  # answers
    1.91,  # mate
    0.54,  # length
    -5.06,  # constant
)
"""Of `EVIDENCE`, and a constant."""
