package domain

import "testing"

func TestOneMakerHoldsHalf(t *testing.T) {
	var h Held
	room := func(m Maker, bytes int) bool { return h.Room(m, bytes, 100, "records") == nil }
	h.Add(7, 50)
	if room(7, 1) || !room(8, 50) || !room(0, 50) || room(0, 51) {
		t.Errorf("beside 50 bytes of one maker: %v %v %v %v", room(7, 1), room(8, 50), room(0, 50), room(0, 51))
	}
	h.Add(0, 50)
	if room(8, 1) || h.Bytes() != 100 {
		t.Errorf("%d bytes", h.Bytes())
	}
	h.Add(7, -50)
	h.Add(0, -50)
	if !room(7, 50) || len(h.by) != 0 || h.Bytes() != 0 {
		t.Errorf("%d bytes of %d makers are left", h.Bytes(), len(h.by))
	}
}
