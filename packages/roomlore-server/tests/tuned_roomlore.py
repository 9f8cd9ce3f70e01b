"""`roomlore` with other constants, which the variable TUNED has as JSON, by the names of `tuned`."""

import json
import os

from roomlore.surfaces.cli import main
from tuned import tuned

if __name__ == "__main__":
    with tuned(**json.loads(os.environ["TUNED"])):
        main()
