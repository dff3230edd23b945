package gameservers

import (
	"testing"

	"github.com/musterhq/muster/internal/domain/catalog"
)

// TestReadsChangeNothing: reads are concurrent, so a search for the game servers of an empty group must not add an entry for it.
func TestReadsChangeNothing(t *testing.T) {
	s := NewRecords()
	s.Groups.Put(Group{Name: "empty"})
	for _, newestFirst := range []bool{false, true} {
		s.ServersOf("empty", catalog.Place{}, newestFirst, func(*Server) bool { t.Error("a game server in an empty group"); return true })
	}
	s.InstancesOf("empty", "", func(string) bool { t.Error("an instance in an empty group"); return true })
	if _, ok := s.Free("empty"); ok || s.Count("empty") != 0 {
		t.Error("a game server in an empty group")
	}
	if len(s.groups) != 0 {
		t.Errorf("reads made entries for %d groups", len(s.groups))
	}
}
