"""The web: the hub's HTTP API.

    server.py      listens: TLS, limits on files
    connections.py who is connected, for how long, and who is let go; exchange.py is one request on them
    app.py         every request: who is it, may it, which route, answer
    routes.py      what a route is; the table in table.py is the API, and its OpenAPI page is made from it
    access.py      who comes in
    answers.py     JSON, problems, streams

and one file for each thing of the API.
"""
