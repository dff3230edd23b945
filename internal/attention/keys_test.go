package attention

import (
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
)

// Operators are told of a key before it expires, and of a key whose replacement is unfinished.
func TestKeysThatEnd(t *testing.T) {
	n := newNight(t)
	day := 24 * time.Hour
	in := func(d time.Duration) domain.Time { return domain.TimeOf(n.engine.Now().Add(d)) }
	n.do(&access.CreateAccessKey{Key: access.Key{ID: "SOON", Name: "lobby", Role: access.Backend, Expires: in(40 * day)}})
	n.do(&access.CreateAccessKey{Key: access.Key{ID: "LATER", Role: access.Backend, Expires: in(400 * day)}})
	n.do(&access.CreateAccessKey{Key: access.Key{ID: "OLD", Role: access.Backend}})
	n.do(&access.RotateAccessKey{ID: "OLD", Successor: access.Key{ID: "NEXT"}})
	items := func() (text string) {
		found, err := New(n.config).Find(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range found.Items {
			if x.Kind == "access key" {
				text += x.What + "\n" + x.Next + "\n"
			}
		}
		return text
	}
	if got := items(); got != "" {
		t.Errorf("long before their ends: %s", got)
	}
	n.offset.Store(int64(31 * day))
	n.do(&access.NoteKeyUses{Uses: []access.Use{{Key: "OLD", At: in(0), Address: "192.0.2.1", Operation: "ListFleets"}}})
	got := items()
	for _, want := range []string{"lobby (SOON) expires at", "no use of it is known", "muster keys rotate SOON", "OLD was replaced by NEXT", "for ListFleets from 192.0.2.1", "muster keys rotate --finish OLD"} {
		if !strings.Contains(got, want) {
			t.Errorf("want %q in:\n%s", want, got)
		}
	}
	if strings.Contains(got, "LATER") {
		t.Errorf("a key that expires next year is there:\n%s", got)
	}
}
