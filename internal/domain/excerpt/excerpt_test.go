package excerpt_test

import (
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/domain/excerpt"
)

// No bound cuts a character in two, and bytes that are no text do not lead out of it.
func TestBounds(t *testing.T) {
	for _, c := range []struct {
		s          string
		most       int
		begin, end string
	}{
		{"", 0, "", ""},
		{"abc", 3, "abc", "abc"},
		{"abc", 2, "ab", "bc"},
		{"abc", 0, "", ""},
		{"aé€", 2, "a", ""},
		{"aé€", 3, "aé", "€"},
		{"aé€", 5, "aé", "é€"},
		{"\x80\x80\x80", 2, "", ""},
	} {
		if begin := excerpt.Begin(c.s, c.most); begin != c.begin {
			t.Errorf("Begin(%q, %d) = %q, want %q", c.s, c.most, begin, c.begin)
		}
		if end := excerpt.End(c.s, c.most); end != c.end {
			t.Errorf("End(%q, %d) = %q, want %q", c.s, c.most, end, c.end)
		}
	}
}

func TestShort(t *testing.T) {
	whole := strings.Repeat("é", 50)
	if got := excerpt.Short(whole); got != whole {
		t.Errorf("shortened 100 bytes to %q", got)
	}
	if got := excerpt.Short("a" + whole); got != "a"+strings.Repeat("é", 49)+"…" {
		t.Errorf("shortened 101 bytes to %q", got)
	}
}
