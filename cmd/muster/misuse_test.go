package main

import (
	"strings"
	"testing"
)

// Errors about the command line say what to write, and where the help is.
func TestMisuse(t *testing.T) {
	for text, want := range map[string]string{
		"serve --listen":                       "--listen: want a value",
		"serve --listen --dev":                 "--listen: want a value before the flag --dev",
		"serve --limit-fleets many":            `--limit-fleets: "many": want a whole number`,
		"secret retire x":                      `<generation>: "x": want a whole number`,
		"keys":                                 `expected one of "create", "list", "rotate", "limit", "revoke", ...; see muster keys --help`,
		"keys create":                          "missing flags: --role=admin|backend|client|readonly; see muster keys create --help",
		"computes rotate-token":                `missing arguments: "<fleet> <compute>"; see muster computes rotate-token --help`,
		"serv":                                 `unexpected argument serv, did you mean "serve"?; see muster --help`,
		"serve --bogus":                        "unknown flag --bogus; see muster serve --help",
		"agent --log-format xml":               `--log-format must be one of "text","json" but got "xml"`,
		"keys create --role root":              `--role: role "root" is unknown, want one of admin, backend, client, readonly`,
		"serve --listen 127.0.0.1:0 --data= x": "unexpected argument x; see muster serve --help",
	} {
		if _, err := runForTest(t, nil, strings.Fields(text)...); err == nil || err.Error() != want {
			t.Errorf("muster %s: got %v, want %s", text, err, want)
		}
	}
}
