"""The trained numbers that ship with roomlore."""

from importlib.resources import files

import numpy as np

from roomlore.core.linking import LinkModel


def load_link_model() -> LinkModel:
    """The link model made by `python -m training.train_links`."""
    with files(__package__).joinpath("links.npz").open("rb") as file, np.load(file) as arrays:
        return LinkModel.of(arrays)
