"""The web app under attack: over sockets of this machine alone, against a server of its own."""
