package sessionapi

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/identity"
)

// line is a small memory for calls, with a clock.
type line struct {
	*testing.T
	*calls
	clock time.Time
}

func newLine(t *testing.T, limits Limits) *line {
	l := &line{T: t, clock: time.Unix(1_700_000_000, 0)}
	if limits.Pending == 0 {
		limits.Pending = 100
	}
	if limits.Kept == 0 {
		limits.Kept = 100
	}
	if limits.KeptBytes == 0 {
		limits.KeptBytes = 1 << 20
	}
	if limits.Readers == 0 {
		limits.Readers = 2
	}
	limits.KeptFor = time.Minute
	l.calls = newCalls(limits, func() time.Time { return l.clock })
	return l
}

func (l *line) start(client string) *call {
	l.Helper()
	c, problem := l.begin(&request{principal: &identity.Principal{ID: "key"}, client: client}, &node{name: "N", event: "OnN"})
	if problem != nil {
		l.Fatal(problem)
	}
	return c
}

func (l *line) heard(s *stream, after uint64) (events int, last uint64, text string) {
	var b bytes.Buffer
	last, _ = l.next(s, after, &b)
	return strings.Count(b.String(), "event: OnN\n"), last, b.String()
}

func TestCallsCompleteOnce(t *testing.T) {
	l := newLine(t, Limits{})
	s, after, _ := l.read(&identity.Principal{ID: "key"}, "tool")
	c := l.start("tool")
	l.complete(c, 1, nil)
	l.complete(c, 2, nil)
	l.complete(c, nil, internalProblem())
	if n, _, text := l.heard(s, after); n != 1 || !strings.Contains(text, `"answer":1`) {
		t.Errorf("heard %q", text)
	}
	if got := string(l.look(c)); !strings.Contains(got, `"answer":1`) {
		t.Errorf("polled %s", got)
	}
	if n := l.pending.Keys.Taken(); n != 0 {
		t.Errorf("%d calls are pending", n)
	}
}

func TestCallsAreBounded(t *testing.T) {
	l := newLine(t, Limits{Pending: 6, Kept: 5})
	for range 3 {
		l.start("tool")
	}
	if _, problem := l.begin(&request{principal: &identity.Principal{ID: "key"}}, &node{}); problem == nil || problem.Name != overloaded || problem.status != 429 {
		t.Errorf("a call of one key beyond its half: %v", problem)
	}
	for range 3 {
		if _, problem := l.begin(&request{principal: &identity.Principal{ID: "other"}}, &node{}); problem != nil {
			t.Errorf("a call of another key: %v", problem)
		}
	}
	if _, problem := l.begin(&request{principal: &identity.Principal{ID: "third"}}, &node{}); problem == nil {
		t.Error("a seventh call is under way")
	}
	l = newLine(t, Limits{Kept: 5})
	var first *call
	for range 20 {
		c := l.start("tool")
		if first == nil {
			first = c
		}
		l.complete(c, "x", nil)
	}
	if len(l.line) != 5 || len(l.byID) != 5 || len(l.streams[streamKey{"key", "tool"}].events) != 5 {
		t.Errorf("kept %d events, %d calls", len(l.line), len(l.byID))
	}
	if _, problem := l.find("key", first.id); problem == nil || problem.Name != unknownCall {
		t.Errorf("the oldest is still there: %v", problem)
	}
	l = newLine(t, Limits{KeptBytes: 10_000})
	for range 20 {
		l.complete(l.start(""), strings.Repeat("x", 3000), nil)
	}
	if l.bytes > 10_000 || len(l.line) != 3 {
		t.Errorf("kept %d bytes in %d events", l.bytes, len(l.line))
	}
	l.complete(l.start(""), strings.Repeat("x", 30_000), nil) // larger than all the room: it is kept alone
	if len(l.line) != 1 {
		t.Errorf("kept %d events", len(l.line))
	}
	if _, _, problem := l.read(&identity.Principal{ID: "key"}, "tool"); problem != nil {
		t.Error(problem)
	}
	if _, _, problem := l.read(&identity.Principal{ID: "key"}, "tool"); problem == nil || problem.status != 503 {
		t.Errorf("one reader too many: %v", problem)
	}
}

// A slow reader gets a notice that it missed events, and continues with the rest.
func TestSlowReader(t *testing.T) {
	l := newLine(t, Limits{Kept: 5})
	s, after, _ := l.read(&identity.Principal{ID: "key"}, "tool")
	for range 3 {
		l.complete(l.start("tool"), "x", nil)
	}
	n, after, _ := l.heard(s, after)
	if n != 3 {
		t.Fatalf("heard %d events", n)
	}
	for range 20 {
		l.complete(l.start("tool"), "x", nil)
	}
	n, after, text := l.heard(s, after)
	if n != 0 || !strings.Contains(text, "event: "+missedEvent+"\n") {
		t.Errorf("heard %d events: %q", n, text)
	}
	if n, _, _ = l.heard(s, after); n != 5 {
		t.Errorf("then heard %d events, want the 5 that are kept", n)
	}
	l.tell(l.start("tool"), "OnN", strings.Repeat("x", 2*batchBytes))
	l.complete(l.start("tool"), "x", nil)
	n, after, _ = l.heard(s, l.last-2)
	if n != 1 {
		t.Errorf("a write has %d events, want it to end behind a large one", n)
	}
	if n, _, _ = l.heard(s, after); n != 1 {
		t.Errorf("then heard %d events", n)
	}
}

// Without a listening client, calls and streams are dropped after their time.
func TestAbsentReader(t *testing.T) {
	l := newLine(t, Limits{})
	c := l.start("tool")
	l.clock = l.clock.Add(time.Hour)
	l.expire()
	if _, problem := l.find("key", c.id); problem != nil {
		t.Errorf("a pending call expired: %v", problem)
	}
	l.complete(c, "x", nil)
	l.complete(l.start(""), "x", nil)
	s, _, _ := l.read(&identity.Principal{ID: "key"}, "idle")
	l.endRead(&identity.Principal{ID: "key"}, s)
	l.clock = l.clock.Add(59 * time.Second)
	l.expire()
	if len(l.byID) != 2 {
		t.Errorf("%d calls are left before their time is over", len(l.byID))
	}
	l.clock = l.clock.Add(2 * time.Second)
	l.expire()
	if len(l.byID)+len(l.line)+len(l.streams)+l.bytes+int(l.pending.Keys.Taken())+int(l.readers.Keys.Taken()) != 0 {
		t.Errorf("left: %d calls, %d events, %d streams, %d bytes", len(l.byID), len(l.line), len(l.streams), l.bytes)
	}
}

// Each reason has its own name, except where clients react to two in the same way.
func TestRefusalsAreSpelled(t *testing.T) {
	for _, reason := range domain.Reasons() {
		p := problemOf(domain.Refuse(reason, "because"))
		if _, ok := refusals[reason]; !ok || p.status < 400 || p.Name == "" {
			t.Errorf("%s becomes %d %s", reason, p.status, p.Name)
		}
		if reason != domain.Stale && p.Message != "because" {
			t.Errorf("%s says %q", reason, p.Message)
		}
	}
}
