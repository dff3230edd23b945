package logsink

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// output is an output that a test blocks or breaks.
type output struct {
	mu   sync.Mutex
	all  bytes.Buffer
	held chan struct{} // nil: writes return
	err  error
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	held := o.held
	o.mu.Unlock()
	if held != nil {
		<-held
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return 0, o.err
	}
	return o.all.Write(p)
}

func (o *output) set(held chan struct{}, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.held, o.err = held, err
}

func (o *output) text() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all.String()
}

func mustWrite(t *testing.T, s *Sink, text string) {
	t.Helper()
	if n, err := s.Write([]byte(text)); n != len(text) || err != nil {
		t.Fatalf("write returned %d, %v", n, err)
	}
}

func mustBe(t *testing.T, s *Sink, lost uint64, why error) {
	t.Helper()
	if n, err := s.Trouble(); n != lost || !errors.Is(err, why) {
		t.Fatalf("lost %d, %v; want %d, %v", n, err, lost, why)
	}
}

// A line is written when Write returns, so it is complete even if the program crashes afterwards.
func TestLinesAreWrittenAtOnce(t *testing.T) {
	var o output
	s := New(&o)
	defer s.Close()
	buffer := []byte("first\n")
	mustWrite(t, s, string(buffer))
	if o.text() != "first\n" {
		t.Fatalf("%q", o.text())
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				_, _ = s.Write([]byte("more\n"))
			}
		})
	}
	all.Wait()
	if got := strings.Count(o.text(), "more\n"); got != 800 {
		t.Errorf("%d lines", got)
	}
	mustBe(t, s, 0, nil)
}

func TestAStuckOutputDelaysOneLine(t *testing.T) {
	var o output
	s := newSink(&o, 20*time.Millisecond)
	told := make(chan string, 10)
	s.OnRecovery(func(lines uint64, why error) { told <- fmt.Sprint(lines, " ", why) })
	mustWrite(t, s, "before\n")
	held := make(chan struct{})
	o.set(held, nil)
	mustWrite(t, s, "delayed\n") // returns after its patience
	mustBe(t, s, 0, errStuck)
	s.patience = time.Hour // from here on a line that waits ends the test
	big := strings.Repeat("x", queueMax/2-20) + "\n"
	for range 2 {
		mustWrite(t, s, big)
	}
	for range 3 {
		mustWrite(t, s, big)
	}
	mustBe(t, s, 3, errStuck)
	o.set(nil, nil)
	close(held)
	if got, want := <-told, "3 "+errStuck.Error(); got != want {
		t.Errorf("told %q, want %q", got, want)
	}
	mustWrite(t, s, "after\n")
	mustBe(t, s, 3, nil)
	if got, want := o.text(), "before\ndelayed\n"+big+big+"after\n"; got != want {
		t.Errorf("%d bytes, want %d", len(got), len(want))
	}
	s.Close()
}

func TestABrokenOutput(t *testing.T) {
	var o output
	s := New(&o)
	defer s.Close()
	told := make(chan string, 10)
	s.OnRecovery(func(lines uint64, why error) { told <- fmt.Sprint(lines, " ", why) })
	broken := errors.New("no space left on device")
	o.set(nil, broken)
	mustWrite(t, s, "one\n")
	mustWrite(t, s, "two\n")
	mustBe(t, s, 2, broken)
	o.set(nil, nil)
	mustWrite(t, s, "three\n")
	if got := <-told; got != "2 no space left on device" {
		t.Errorf("told %q", got)
	}
	mustBe(t, s, 2, nil)
	mustWrite(t, s, "four\n")
	select {
	case got := <-told:
		t.Errorf("told again: %q", got)
	default:
	}
}

func TestCloseWaitsForLines(t *testing.T) {
	var o output
	held := make(chan struct{})
	o.set(held, nil)
	s := newSink(&o, 10*time.Millisecond)
	mustWrite(t, s, "a\n")
	mustWrite(t, s, "b\n")
	s.Close() // gives up
	close(held)
	<-s.ended
	if o.text() != "a\nb\n" {
		t.Errorf("%q", o.text())
	}
}
