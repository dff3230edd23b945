package doors

import (
	"os/exec"
	"strings"
	"testing"
)

// Go compiles every method of a generic type again in each package that sees one. These packages stand for those that must not see the tables and trees of the
// core, Pebble's or OpenTelemetry's: docs/decisions/0102-the-first-minute.md.
func TestGenericTypesStayWhereTheyAreUsed(t *testing.T) {
	t.Parallel()
	kept := []string{
		"github.com/tidwall/btree.", module + "internal/domain/chunk.Table[", module + "internal/domain/chunk.Frozen[",
		"github.com/cockroachdb/", "github.com/RaduBerinde/", "go.opentelemetry.io/otel/sdk/metric",
	}
	packages := []string{"internal/playerwatch", "internal/gamemetrics", "internal/console", "internal/datadir", "internal/service"}
	args := []string{"list", "-export", "-f", "{{.ImportPath}} {{.Export}}"}
	for _, p := range packages {
		args = append(args, module+p)
	}
	listed, err := exec.Command("go", args...).Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(listed)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		symbols, err := exec.Command("go", "tool", "nm", file).Output()
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		for _, of := range kept {
			var first string
			functions := 0
			for line := range strings.Lines(string(symbols)) {
				_, symbol, _ := strings.Cut(strings.TrimSpace(line), " T ")
				if strings.HasPrefix(symbol, of) && strings.Contains(symbol, "[") {
					functions++
					first = symbol
				}
			}
			if functions > 0 {
				t.Errorf("%s compiles %d functions of generic types of %s again, such as %s. A field, a parameter or a method of a type that it knows, also an "+
					"unexported one of another package, leads there: put an interface, or an alias of one, in between", path, functions, of, first)
			}
		}
	}
}
