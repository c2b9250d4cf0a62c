"""What things cost, as ratios to what one would use otherwise. `make bench` runs them all."""
