package flow

import (
	"strings"
	"testing"
)

// The events that are kept for the studio are bounded in number and in bytes. Later events do not change a frozen copy.
func TestStudioIsBounded(t *testing.T) {
	var s Studio
	s.Put(Subscription{ID: SubscriptionID{1}})
	write := func(n int, body string) {
		for range n {
			s.Write(StudioEvent{No: s.Head() + 1, Body: body}, s.KeptWith(StudioEventSize(body, 0)), 0)
		}
	}
	write(StudioEventsMax+10, "")
	if n := len(s.After(0)); n != StudioEventsMax || s.FirstKept() != 11 || s.After(20)[0].No != 21 {
		t.Errorf("%d events are kept from %d on", n, s.FirstKept())
	}
	frozen := s
	large := strings.Repeat("x", 1<<20)
	write(70, large)
	if n := len(s.After(0)); n > 64 || s.bytes > StudioBytesMax {
		t.Errorf("%d events with %d bytes are kept", n, s.bytes)
	}
	if len(frozen.After(0)) != StudioEventsMax || frozen.After(0)[0].No != 11 {
		t.Error("the frozen copy has changed")
	}
	s.Remove(SubscriptionID{1})
	if s.bytes != 0 || s.After(0) != nil {
		t.Errorf("%d bytes are kept for nobody", s.bytes)
	}
}
