package cell

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/musterhq/muster/internal/domain/playerflow/inspection"
)

// TestInvariantsHaveMeanings: whatever an audit can report is explained where operators read it.
func TestInvariantsHaveMeanings(t *testing.T) {
	files, err := filepath.Glob("../playerflow/inspection/audit*.go")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for n := 1; n <= 15; n++ {
		names[fmt.Sprint("I", n)] = true
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range regexp.MustCompile(`\.fail\("(\w+)"`).FindAllStringSubmatch(string(text), -1) {
			names[found[1]] = true
		}
	}
	for name := range names {
		if (inspection.Violation{Invariant: name}).Meaning() == "" {
			t.Errorf("an audit can report %s, which has no meaning in invariants", name)
		}
	}
	for name := range inspection.Invariants {
		if !names[name] {
			t.Errorf("invariants explains %s, which no audit reports", name)
		}
	}
}
