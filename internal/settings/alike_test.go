package settings

import "testing"

func TestMarks(t *testing.T) {
	base := Defaults()
	if m := base.Marks(nil); len(m) != 0 {
		t.Errorf("the defaults have the marks %v", m)
	}
	own := base
	own.Data, own.LogLevel, own.LimitConnections = "/srv", "debug", 5
	if m := own.Marks(nil); len(m) != 0 {
		t.Errorf("settings of one node have the marks %v", m)
	}
	a, b := base, base
	a.LimitFleets, b.LimitFleets = 7, 8
	a.People, b.People = "/etc/a.json", "/srv/b.json"
	if a, b := a.Marks(nil), b.Marks(nil); a["limit-fleets"] == b["limit-fleets"] || a["people"] == b["people"] || len(a) != 2 {
		t.Errorf("%v and %v", a, b)
	}
	alike := map[string]string{"people": "content", "player-hooks": ""}
	if a, b := a.Marks(alike), b.Marks(alike); a["people"] != b["people"] || len(a) != 2 {
		t.Errorf("files with the same content: %v and %v", a, b)
	}
}
