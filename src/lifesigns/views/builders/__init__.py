"""Builders: the views, made from beliefs and events. Only a hub needs them; a client only reads the shapes."""
