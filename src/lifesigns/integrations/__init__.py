"""Other people's tools and protocols, over ours."""
