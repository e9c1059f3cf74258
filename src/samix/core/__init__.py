"""What every part of samix uses: shapes, pairs, mixed batches, checks, words, seeds, schedules, processes."""
