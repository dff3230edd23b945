package gamelift

import (
	"flag"
	"os"
	"slices"
	"testing"
)

//go:generate go test -run TestCompatibilityPage -update .

var update = flag.Bool("update", false, "write docs/compatibility.md instead of checking it")

const compatibilityFile = "../../docs/compatibility.md"

func TestCompatibilityPage(t *testing.T) {
	want := CompatibilityPage()
	if *update {
		if err := os.WriteFile(compatibilityFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(compatibilityFile); err != nil || string(got) != want {
		t.Errorf("docs/compatibility.md is not what the table of operations says (%v); run go generate ./internal/gamelift", err)
	}
	for name, note := range differences {
		if !slices.ContainsFunc(operations, func(op operation) bool { return op.name == name && op.standing == works }) {
			t.Errorf("a difference is noted for %s, which does not work", name)
		}
		if note == "" {
			t.Errorf("no difference is noted for %s", name)
		}
	}
}
