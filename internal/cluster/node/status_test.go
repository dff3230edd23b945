package node

import (
	"slices"
	"strings"
	"testing"
)

// A node without a leader knows why, if it was removed.
func TestOutlookWithoutALeader(t *testing.T) {
	for removed, want := range map[bool]string{false: "no leader is known", true: "was removed from the cluster"} {
		if got := outlook(3, 0, false, false, removed, 0); !strings.Contains(got, want) {
			t.Errorf("removed %t: got %q, want %q", removed, got, want)
		}
	}
	if got := outlook(3, 0, false, true, true, 0); strings.Contains(got, "removed") { // it has joined a moment ago, or leaves
		t.Errorf("with a leader: %q", got)
	}
}

// The status warns while one node alone has all archived records.
func TestArchivesInTheOutlook(t *testing.T) {
	whole := func(id string) Member { return Member{ID: id, Version: "1"} }
	copies := func(id string) Member { return Member{ID: id, Version: "1", Copies: true} }
	for _, c := range []struct {
		members []Member
		want    string
	}{
		{[]Member{whole("a"), whole("b")}, ""},
		{[]Member{whole("a"), whole("b"), copies("c")}, ""},
		{[]Member{whole("a"), copies("b"), {ID: "c"}}, "; a alone has all archived records: keep it until the others have copied them"},
		{[]Member{{ID: "a", Version: "1", Missing: true}, copies("b")}, "; no node is known that has all archived records"},
	} {
		if got := archives(c.members); got != c.want {
			t.Errorf("%+v: got %q, want %q", c.members, got, c.want)
		}
	}
}

func TestMarksThatDiffer(t *testing.T) {
	a := map[string]uint64{"same": 1, "other": 2, "mine": 3, "zero": 0}
	b := map[string]uint64{"same": 1, "other": 4, "theirs": 5, "zero": 0}
	if got := differing(a, b); !slices.Equal(got, []string{"mine", "other", "theirs"}) {
		t.Errorf("%v differ", got)
	}
	if got := differing(nil, map[string]uint64{"zero": 0}); !slices.Equal(got, []string{"zero"}) {
		t.Errorf("%v differ from defaults", got)
	}
	if got := differing(a, a); len(got) != 0 || len(differing(nil, nil)) != 0 {
		t.Errorf("%v differ, and are alike", got)
	}
}
