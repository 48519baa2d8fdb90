"""Who asks: keys, scopes, principals."""
