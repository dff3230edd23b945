package events

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/musterhq/muster/internal/playerapi/objects"
)

// An event is as long as what is in it: a sign of HTML takes one byte, as it did in the request that was measured.
func TestEventsAreWrittenAsTheyCame(t *testing.T) {
	got := string(Writer{}.tail("1", 0, "OnPartyChanged", fields{"attributes": objects.Object(`{"a":"<&>"}`)}))
	if !strings.HasSuffix(got, `"data":{"attributes":{"a":"<&>"}}}`) || !utf8.ValidString(got) {
		t.Errorf("written as %s", got)
	}
}
