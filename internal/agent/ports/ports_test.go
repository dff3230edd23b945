package ports

import (
	"errors"
	"net"
	"testing"
	"time"
)

var now = time.Unix(1_800_000_000, 0)

func yes(int) bool { return true }

func TestParseRange(t *testing.T) {
	for text, want := range map[string]Range{"7000-7999": {7000, 7999}, "7000": {7000, 7000}, "1026-60000": {1026, 60000}} {
		if got, err := ParseRange(text); err != nil || got != want {
			t.Errorf("%q: got %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "x", "7000-", "-7000", "7999-7000", "1025-2000", "7000-60001", "7000-7999-8000"} {
		if got, err := ParseRange(text); err == nil {
			t.Errorf("%q: got %v, want an error", text, got)
		}
	}
}

func TestPortsRestAfterUse(t *testing.T) {
	p := NewPool(Range{7000, 7001}, yes)
	a, _ := p.Take(now)
	b, _ := p.Take(now)
	if a != 7000 || b != 7001 || p.Taken() != 2 {
		t.Fatalf("got %d and %d, %d taken", a, b, p.Taken())
	}
	p.Release(now, a)
	_, err := p.Take(now.Add(Rest - 1))
	if none, ok := errors.AsType[*NoneError](err); !ok || *none != (NoneError{Range: Range{7000, 7001}, Taken: 1, Resting: 1}) {
		t.Fatalf("while it rests: %v", err)
	}
	if got, err := p.Take(now.Add(Rest)); got != a || err != nil {
		t.Fatalf("after the rest: %d, %v", got, err)
	}
	p.Return(a)
	if got, err := p.Take(now.Add(Rest)); got != a || err != nil {
		t.Fatalf("returned unused: %d, %v", got, err)
	}
}

func TestRoundTheRange(t *testing.T) {
	p := NewPool(Range{7000, 7002}, yes)
	for _, want := range []int{7000, 7001, 7002, 7000} {
		got, err := p.Take(now)
		if got != want || err != nil {
			t.Fatalf("got %d, %v, want %d", got, err, want)
		}
		p.Return(got)
	}
}

func TestHeldPortsAreNotGivenAway(t *testing.T) {
	p := NewPool(Range{7000, 7001}, yes)
	p.Hold(7000, 9000)
	if got, err := p.Take(now); got != 7001 || err != nil {
		t.Fatalf("got %d, %v", got, err)
	}
	if _, err := p.Take(now); err == nil {
		t.Fatal("want an error")
	}
}

// TestPortsOfOtherPrograms: another program holds one port over TCP and one over UDP.
func TestPortsOfOtherPrograms(t *testing.T) {
	tcp, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	udp, err := net.ListenPacket("udp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	for name, port := range map[string]int{"TCP": tcp.Addr().(*net.TCPAddr).Port, "UDP": udp.LocalAddr().(*net.UDPAddr).Port} {
		_, err := NewPool(Range{port, port}, nil).Take(now)
		if none, ok := errors.AsType[*NoneError](err); !ok || none.Busy != 1 {
			t.Errorf("%s: %v, want the port busy", name, err)
		}
	}
}

func TestEphemeral(t *testing.T) {
	if got, ok := parseEphemeral("32768\t60999\n"); !ok || got != (Range{32768, 60999}) {
		t.Errorf("got %v, %v", got, ok)
	}
	for _, text := range []string{"", "1", "a b"} {
		if got, ok := parseEphemeral(text); ok {
			t.Errorf("%q: got %v", text, got)
		}
	}
	if kernel, ok := Ephemeral(); ok && CheckEphemeral(Range{kernel.Last, kernel.Last}) == nil {
		t.Error("a range of the kernel's ports: want an error")
	}
}
