"""SlackTier's Python side: what its programs call in their embedded interpreter, and what runs in a user's own."""
