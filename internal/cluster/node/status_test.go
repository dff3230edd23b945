package node

import "testing"

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
