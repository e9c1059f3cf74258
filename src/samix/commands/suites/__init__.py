"""What `samix bench` is made of: runs, their processes, the live table, results/SUITE.csv, the verdict."""
