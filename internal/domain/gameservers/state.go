package gameservers

import (
	"github.com/musterhq/muster/internal/domain/catalog"
	"github.com/musterhq/muster/internal/domain/chunk"
	"github.com/musterhq/muster/internal/domain/quota"
	"github.com/musterhq/muster/internal/domain/sorted"
)

// References to records in the tables of this package; see chunk.Ref.
type (
	GroupRef  = chunk.Ref[Group]
	ServerRef = chunk.Ref[Server]
)

// Records has all groups and game servers, with their indexes.
type Records struct {
	Groups  catalog.Catalog[Group]
	Servers catalog.Catalog[Server]

	groups map[string]*members
}

// members has the game servers of a group.
type members struct {
	all       sorted.Set[member] // in the order of registration
	free      sorted.Set[member] // those that can be claimed
	instances sorted.Map[string, int]
	utilized  int
}

type member struct {
	catalog.Place
	ref ServerRef
}

func byRegistration(a, b member) bool {
	if a.Created != b.Created {
		return a.Created < b.Created
	}
	return a.ID < b.ID
}

// NewRecords returns empty Records.
func NewRecords() *Records {
	return &Records{Groups: catalog.NewHeld(groupPlace, func(g *Group) quota.Holder { return g.Holder }), Servers: catalog.NewHeld(serverPlace, func(s *Server) quota.Holder { return s.Holder }), groups: map[string]*members{}}
}

// members returns the entry of a group, and adds it if it is missing. It is for changes: reads are concurrent and must not call it.
func (s *Records) members(group string) *members {
	m := s.groups[group]
	if m == nil {
		tree := func() sorted.Set[member] {
			return sorted.NewSet(byRegistration)
		}
		m = &members{all: tree(), free: tree(), instances: sorted.NewMap[string, int]()}
		s.groups[group] = m
	}
	return m
}

// PutServer stores a game server, new or changed. Its group, its instance and its registration never change.
func (s *Records) PutServer(x Server) ServerRef {
	old, known := s.Servers.Find(x.ID)
	wasUtilized := known && s.Servers.Get(old).Utilized
	x.indexed = known && s.Servers.Get(old).indexed
	r := s.Servers.Put(x)
	m := s.members(x.Group)
	if !known {
		s.join(m, r)
	} else if x.Utilized && !wasUtilized { // it stays utilized
		m.utilized++
	}
	s.reindex(m, r)
	return r
}

func (s *Records) join(m *members, r ServerRef) {
	x := s.Servers.Get(r)
	m.all.Set(member{serverPlace(x), r})
	n, _ := m.instances.Get(x.Instance)
	m.instances.Set(x.Instance, n+1)
	if x.Utilized {
		m.utilized++
	}
}

// reindex adds a game server to the free ones, or removes it.
func (s *Records) reindex(m *members, r ServerRef) {
	x := s.Servers.Get(r)
	free := x.Free()
	if free == x.indexed {
		return
	}
	at := member{serverPlace(x), r}
	s.Servers.Mut(r).indexed = free
	if free {
		m.free.Set(at)
	} else {
		m.free.Delete(at)
	}
}

// DropServer removes a game server.
func (s *Records) DropServer(r ServerRef) {
	x := s.Servers.Get(r)
	at, m := member{serverPlace(x), r}, s.members(x.Group)
	m.all.Delete(at)
	m.free.Delete(at)
	if x.Utilized {
		m.utilized--
	}
	if n, _ := m.instances.Get(x.Instance); n > 1 {
		m.instances.Set(x.Instance, n-1)
	} else {
		m.instances.Delete(x.Instance)
	}
	s.Servers.Drop(r)
}

// DropGroup removes a group, which has no more game servers.
func (s *Records) DropGroup(r GroupRef) {
	delete(s.groups, s.Groups.Get(r).Name)
	s.Groups.Drop(r)
}

// Utilized returns the number of game servers in a group that are UTILIZED.
func (s *Records) Utilized(group string) int {
	if m := s.groups[group]; m != nil {
		return m.utilized
	}
	return 0
}

// Count returns the number of game servers in a group.
func (s *Records) Count(group string) int {
	if m := s.groups[group]; m != nil {
		return m.all.Len()
	}
	return 0
}

// Free returns the game server of a group that has waited longest for a claim.
func (s *Records) Free(group string) (ServerRef, bool) {
	m := s.groups[group]
	if m == nil {
		return 0, false
	}
	first, ok := m.free.Min()
	return first.ref, ok
}

// ServersOf yields the game servers of a group in the order of registration or in the opposite one, beginning after a place or at the
// start.
func (s *Records) ServersOf(group string, after catalog.Place, newestFirst bool, yield func(*Server) bool) {
	m := s.groups[group]
	if m == nil {
		return
	}
	from := member{Place: after}
	visit := func(x member) bool { return x.Place == after || yield(s.Servers.Get(x.ref)) }
	switch all := m.all; {
	case !newestFirst:
		all.Ascend(from, visit)
	case after == catalog.Place{}:
		all.Reverse(visit)
	default:
		all.Descend(from, visit)
	}
}

// InstancesOf yields the ids of the instances of a group's game servers, in order, starting after one.
func (s *Records) InstancesOf(group, after string, yield func(id string) bool) {
	m := s.groups[group]
	if m == nil {
		return
	}
	m.instances.Ascend(after, func(id string, _ int) bool { return id == after || yield(id) })
}

// HasInstance reports whether a group has a game server on an instance.
func (s *Records) HasInstance(group, id string) (there bool) {
	if m := s.groups[group]; m != nil {
		_, there = m.instances.Get(id)
	}
	return there
}

// Restore rebuilds the indexes from the records, after a snapshot was loaded.
func (s *Records) Restore() {
	s.Groups.Restore()
	s.Servers.Restore()
	for r, x := range s.Servers.All() {
		m := s.members(x.Group)
		s.join(m, r)
		s.reindex(m, r)
	}
}
