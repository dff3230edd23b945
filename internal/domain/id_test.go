package domain

import (
	"fmt"
	"strings"
	"testing"
)

type shipKind struct{}

func (shipKind) Prefix() string { return "ship-" }

func TestIDs(t *testing.T) {
	const digits = "0123abcd-ef45-4678-9abc-def012345678"
	type shipID = ID[shipKind]
	id, err := ParseID[shipID]("ship-" + digits)
	if err != nil || id.String() != "ship-"+digits || fmt.Sprintf("%s %v", id, id) != "ship-"+digits+" ship-"+digits || id.IsZero() {
		t.Errorf("ship-%s was read as %s (%v)", digits, id, err)
	}
	if zero := (shipID{}); !zero.IsZero() || zero.String() != "ship-00000000-0000-0000-0000-000000000000" || !zero.Less(id) || id.Less(zero) || id.Less(id) {
		t.Error("the zero id is not zero, or not the first")
	}
	for _, wrong := range []string{"", digits, "ship-", "boat-" + digits, "ship-" + digits + "0", "SHIP-" + digits, "ship-" + strings.ToUpper(digits), " ship-" + digits} {
		if id, err := ParseID[shipID](wrong); err == nil || err.Error() != "want ship- and a UUID" || !id.IsZero() {
			t.Errorf("%q was read as %s: %v", wrong, id, err)
		}
	}
	if n := testing.AllocsPerRun(100, func() { sink = id.String() }); n > 1 {
		t.Errorf("printing an id takes %.0f allocations, want 1", n)
	}
}

var sink string

func BenchmarkID(b *testing.B) {
	id := ID[shipKind]{1, 2, 3}
	b.ReportAllocs()
	for b.Loop() {
		sink = id.String()
	}
}
