"""One module a subcommand group: `add` declares its options, the rest runs it."""
