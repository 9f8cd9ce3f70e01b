"""The link model's trained weights, shipped with roomlore."""

from functools import cache
from importlib.resources import files

import numpy as np

from roomlore.core.linking.model import LinkModel


@cache
def load_link_model() -> LinkModel:
    """Return the link model made by `python -m training.train_links`, the same at each call."""
    with files(__package__).joinpath("links.npz").open("rb") as file, np.load(file) as arrays:
        return LinkModel.of(arrays)
