"""What the signs of `roomlore.core.far` count for, as `python -m training.train_far` prints it.

Fitted to questions asked later, to messages of talks that need nothing far, and to own questions; see
docs/explanation/asked-later.md for how each set does by models that were fitted without it.
"""

NEED_WEIGHTS = (
    1.50,  # pause
    1.66,  # started
    1.09,  # question
    1.93,  # fact
    -0.61,  # general
    1.86,  # remembering
    0.98,  # happened
    2.19,  # standing
    2.07,  # told
    2.61,  # particular
    0.15,  # own
    -0.78,  # spoken_to
    2.46,  # mention
    -1.32,  # addressed
    0.93,  # time
    6.07,  # dialogue
    -1.17,  # length
    0.29,  # long
    -2.53,  # code
    -1.42,  # reply
    -5.85,  # constant
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
