"""`python -m samix` is `samix`."""

from samix.cli import main

main()
