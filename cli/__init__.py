"""The `rollway` command line. A command ends soon, so garbage is collected seldom, and not at all at the end."""

import atexit
import gc

gc.set_threshold(100_000)  # to look each 700 objects while modules are loaded takes a twelfth of what `status` costs
atexit.register(gc.freeze)  # who ends looks for no garbage, which takes a tenth
