"""What the model did, laid open: traces, figures, reports."""
