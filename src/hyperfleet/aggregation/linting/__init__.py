"""What a policy does, found by trying: rules that are almost surely wrong, and the picture of its phases."""
