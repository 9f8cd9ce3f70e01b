"""The trained weights that are shipped with roomlore."""

from functools import cache
from importlib import import_module
from importlib.resources import files
from typing import cast

import numpy as np

from roomlore.core.linking.kernel import KernelLibrary
from roomlore.core.linking.model import LinkModel
from roomlore.core.memory.scoring import AnswerModel


@cache
def load_link_model(*, compiled: bool = False) -> LinkModel:
    """Return the link model made by `python -m training.train_links`, the same at each call; `compiled`: if the package
    `roomlore-kernel` is installed, in its compiled form."""
    if compiled:
        try:
            return load_link_model().compiled(cast(KernelLibrary, import_module("roomlore_kernel")))
        except ImportError:
            return load_link_model()
    with files(__package__).joinpath("links.npz").open("rb") as file, np.load(file) as arrays:
        return LinkModel.of(arrays)


@cache
def load_answer_model() -> AnswerModel:
    """Return the comparison of vectors made by `python -m training.train_answers`, the same at each call."""
    with files(__package__).joinpath("answers.npz").open("rb") as file, np.load(file) as arrays:
        return AnswerModel.of(arrays)
