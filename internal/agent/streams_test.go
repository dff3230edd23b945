package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/agentproto"
)

func TestTailBeginsWithALine(t *testing.T) {
	for _, c := range []struct {
		tail         string
		bytes, lines int
		want         string
	}{
		{"a\nb\nc\n", 100, 2, "b\nc\n"},
		{"a\nb\nc", 100, 2, "b\nc"},
		{"a\nb\n", 100, 9, "a\nb\n"},
		{"a\nb\n", 100, 0, "a\nb\n"},
		{"", 100, 3, ""},
		{"\n", 100, 1, "\n"},
		{"\xac x\n", 4, 0, " x\n"}, // the end of a €
		{"\xac x\n", 4, 5, " x\n"},
		{"\xac\xac\xac\xac\xac\xac", 6, 0, "\xac\xac"}, // no text: little is lost
	} {
		if got := c.tail[begin([]byte(c.tail), c.bytes, c.lines):]; got != c.want {
			t.Errorf("the last %d lines of %q: %q, want %q", c.lines, c.tail, got, c.want)
		}
	}
}

func TestWholeCharacters(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "ab": 2, "a€": 4, "a\xe2": 1, "a\xe2\x82": 1, "a\xf0\x9f\x98": 1, "a😀": 5, "\xe2": 1, "\xff\xff": 2, "\x80\x80\x80\x80": 4, "a\xff": 2,
	} {
		if got := whole([]byte(text)); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

// A slow reader gets each message when it is ready, and a connection that breaks meanwhile does not end the stream.
func TestOutputWaitsForTheReader(t *testing.T) {
	s := newService(t, play(1, "wait"))
	dir := s.run(nil)
	id := s.some(agentproto.ProcessStarting, 1)[0].ProcessID
	path := filepath.Join(dir, "logs", id, "output.log")
	s.eventually("output", func() bool { text, _ := os.ReadFile(path); return string(text) == "ready\n" })
	s.set(func() { s.slow = true })
	s.push(&agentproto.StartOutput{StreamID: "s", ProcessID: id, TailBytes: 1000, TailLines: 1, Follow: true})
	s.eventually("the same message again and again", func() bool { return s.refusals >= 3 })
	s.cut()
	s.eventually("another connection", func() bool { return s.hellos == 2 })
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteString(strings.Repeat("€", 20_000) + "\nlast\n"); err != nil {
		t.Fatal(err)
	}
	s.set(func() { s.slow = false })
	want := "ready\n" + strings.Repeat("€", 20_000) + "\nlast\n"
	s.eventually("all of it, in order", func() bool { return s.output.String() == want })
	s.set(func() { s.forgets = true })
	if _, err := file.WriteString("more\n"); err != nil {
		t.Fatal(err)
	}
	s.eventually("the message that got 404", func() bool { return s.refusals >= 1 && s.forgotten == 1 })
	s.set(func() { s.forgets = false })
	if _, err := file.WriteString("nothing\n"); err != nil {
		t.Fatal(err)
	}
	s.push(&agentproto.StartOutput{StreamID: "t", ProcessID: id, TailBytes: 8})
	s.eventually("another stream, and none of the first", func() bool { return s.output.String() == want+"nothing\n" && s.outputEnds == 1 })
}
