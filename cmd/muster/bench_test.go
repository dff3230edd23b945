package main

import (
	"os"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/bench"
)

// asMuster makes this test binary the muster binary, for tests that start it as a process.
const asMuster = "TEST_BINARY_IS_MUSTER"

func TestMain(m *testing.M) {
	if os.Getenv(asMuster) != "" {
		main()
		return
	}
	if os.Getenv(asGame) != "" {
		playGame()
		return
	}
	os.Exit(m.Run())
}

// TestBenchWorks runs every scenario as small as it gets. Nothing is said about its numbers.
func TestBenchWorks(t *testing.T) {
	if testing.Short() {
		t.Skip("starts the service several times")
	}
	t.Setenv(asMuster, "1")
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	table, err := bench.Run(t.Context(), bench.Options{Binary: binary, Quick: true, Dir: t.TempDir(), Progress: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := table.WriteMarkdown(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"JSON 1.1, bare", "CBOR, durable", "metrics and audit log: processor time", "durable, at ", "game sessions", "over wss", "one core", "restart with", "event stream over ws", "event stream over wss,", "event stream over wss with --tls-release-buffers", "valid tokens", "flow changes a second", "fresh logins", "a match of 60",
		"changes at the leader of three", "while the leader dies: connections lost", "killed: all back", "an empty node joins", "kill -9 of the leader", "planned hand-over",
		"connected agent", "until its player is free", "a new runtime configuration", "all agents are back", "copied 3 times"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no line with %q in the table:\n%s", want, &text)
		}
	}
}
