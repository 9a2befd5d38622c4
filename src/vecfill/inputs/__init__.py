"""Whatever users have -> entity names that match words, and one prepared domain matrix."""
