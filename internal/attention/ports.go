package attention

import (
	"slices"
	"strings"
)

// portWords are how systems, engines and muster agent say that another program has a port, in small letters.
var portWords = []string{
	"address already in use", "eaddrinuse", "only one usage of each socket address", "port already in use", "port is already in use", "are taken by other programs",
}

// portTaken reports whether a text, such as the last output of a server process, says that another program has its port.
func portTaken(text string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc(portWords, func(words string) bool { return strings.Contains(text, words) })
}

const portStep = "Another program on the host is using the port. End it (ss -ltnup names it), or give the game server another port: muster agent gives each server process one that is free " +
	"by {port} in its parameters, from the range of --ports."
