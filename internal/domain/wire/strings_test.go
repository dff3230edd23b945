package wire_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/musterhq/muster/internal/domain/wire"
)

// TestShared: all Readers that share strings get the same copy of each, while they read at the same time.
func TestShared(t *testing.T) {
	const readers, texts = 4, 5000
	var bodies [texts][]byte
	for i := range bodies {
		bodies[i] = wire.Append(nil, &message{Shared: fmt.Sprintf("a text that many messages have, number %d", i)})
	}
	all := wire.NewStrings()
	var got [readers][texts]string
	var reading sync.WaitGroup
	for n := range readers {
		reading.Go(func() {
			var r wire.Reader
			r.Share(all)
			for i := range bodies {
				var m message
				if err := r.Read(bodies[(i+n*texts/readers)%texts], &m); err != nil {
					t.Error(err)
				}
				got[n][(i+n*texts/readers)%texts] = m.Shared
			}
		})
	}
	reading.Wait()
	for i := range texts {
		if want := fmt.Sprintf("a text that many messages have, number %d", i); got[0][i] != want {
			t.Fatalf("%q, want %q", got[0][i], want)
		}
		for n := range readers {
			if got[n][i] != got[0][i] || unsafe.StringData(got[n][i]) != unsafe.StringData(got[0][i]) {
				t.Fatalf("reader %d has a copy of its own of %q", n, got[0][i])
			}
		}
	}
}

// body is a message with a string that is worth sharing only if it is long.
type body struct{ text string }

func (b *body) Fields(c *wire.Codec) { c.SharedFrom(1, &b.text, 8) }

func TestSharedFrom(t *testing.T) {
	all := wire.NewStrings()
	read := func(r *wire.Reader, text string) string {
		var b body
		if err := r.Read(wire.Append(nil, &body{text}), &b); err != nil || b.text != text {
			t.Fatalf("%q, want %q: %v", b.text, text, err)
		}
		return b.text
	}
	var one, other wire.Reader
	one.Share(all)
	other.Share(all)
	for text, shared := range map[string]bool{"short": false, strings.Repeat("long", 2): true} {
		first := read(&one, text)
		if unsafe.StringData(read(&one, text)) != unsafe.StringData(first) {
			t.Errorf("%q: one reader has two copies, one right after the other", text)
		}
		if (unsafe.StringData(read(&other, text)) == unsafe.StringData(first)) != shared {
			t.Errorf("%q is shared with other readers: %v, want %v", text, !shared, shared)
		}
	}
	if got := read(&one, ""); got != "" {
		t.Errorf("%q, want nothing", got)
	}
}
