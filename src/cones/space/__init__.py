"""From what users have to the vector, and back: bounds."""
