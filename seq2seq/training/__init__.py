"""The training loop and the state that lets it go on exactly."""
