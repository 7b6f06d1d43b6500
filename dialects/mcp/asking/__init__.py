"""What a client is asked for before an operation runs: forms for the user, messages of the model, roots."""
