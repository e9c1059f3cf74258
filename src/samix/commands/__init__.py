"""One file per command: reads its words, delegates, prints."""
