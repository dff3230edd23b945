package access

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/catalog"
)

// Records has all access keys.
type Records struct {
	Keys catalog.Catalog[Key]

	TakenOver *TakenOver // nil: the access key file, if any, has not been imported yet

	working int // valid keys
	admins  int // valid keys with the role admin

	bySecret map[uint32]int // number of valid keys, by the generation from which they are derived
}

// NewRecords returns empty Records.
func NewRecords() *Records { return &Records{Keys: catalog.New(place), bySecret: map[uint32]int{}} }

// Put stores a key, new or changed.
func (s *Records) Put(k Key) {
	if r, ok := s.Keys.Find(k.ID); ok {
		s.count(s.Keys.Get(r), -1)
	}
	s.Keys.Put(k)
	s.count(&k, 1)
}

// Drop removes a key.
func (s *Records) Drop(id string) {
	if r, ok := s.Keys.Find(id); ok {
		s.count(s.Keys.Get(r), -1)
		s.Keys.Drop(r)
	}
}

func (s *Records) count(k *Key, n int) {
	if !k.Works() {
		return
	}
	s.working += n
	if s.bySecret[k.SecretGeneration()] += n; s.bySecret[k.SecretGeneration()] == 0 {
		delete(s.bySecret, k.SecretGeneration())
	}
	if k.Role == Admin {
		s.admins += n
	}
}

// workingOf returns the number of valid keys derived from a generation of the cell's secret.
func (s *Records) workingOf(number uint32) int { return s.bySecret[number] }

// Working returns the number of valid keys.
func (s *Records) Working() int { return s.working }

// Admins returns the number of valid keys with the role admin.
func (s *Records) Admins() int { return s.admins }

// RevokedBefore returns the ids of the keys that were revoked before a time, in creation order.
func (s *Records) RevokedBefore(t domain.Time) (ids []string) {
	s.Keys.Since(catalog.Place{}, func(k *Key) bool {
		if !k.Works() && k.Revoked < t {
			ids = append(ids, k.ID)
		}
		return true
	})
	return ids
}

// Restore rebuilds the indexes from the records, after a snapshot was loaded.
func (s *Records) Restore() {
	s.Keys.Restore()
	s.working, s.admins = 0, 0
	clear(s.bySecret)
	for _, k := range s.Keys.All() {
		s.count(k, 1)
	}
}
