package events

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/musterhq/muster/internal/playerapi/objects"
)

// An event is as long as its content: a special character of HTML takes one byte, as in the request whose size was checked.
func TestEventsAreWrittenAsTheyCame(t *testing.T) {
	got := string(Writer{}.tail("1", 0, "OnPartyChanged", fields{"attributes": objects.Object(`{"a":"<&>"}`)}))
	if !strings.HasSuffix(got, `"data":{"attributes":{"a":"<&>"}}}`) || !utf8.ValidString(got) {
		t.Errorf("written as %s", got)
	}
}
