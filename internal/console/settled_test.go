package console

import (
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
)

// A name cannot change the direction of the text around it, not even within a sentence. Values that links and forms send are unchanged.
func TestSettled(t *testing.T) {
	for page, want := range map[string]string{
		"<p>Fleet \u202edev\u202c has no host</p>":                        "<p>Fleet \ufffddev\ufffd has no host</p>",
		"<p>\u200f\u200e\u061c\u2066\u2069</p>":                           "<p>\ufffd\ufffd\ufffd\ufffd\ufffd</p>",
		"<p>שלום, \u200d – “dev”</p>":                                     "<p>שלום, \u200d – “dev”</p>",
		"<input value=\"a > \u202eb\"> \u202ec":                           "<input value=\"a > \u202eb\"> \ufffdc",
		"<a title='\"\u202e'>\u202e</a>":                                  "<a title='\"\u202e'>\ufffd</a>",
		"<textarea name=\"x\">\n\u202e{\"a\": 1}</textarea><p>\u202e</p>": "<textarea name=\"x\">\n\u202e{\"a\": 1}</textarea><p>\ufffd</p>",
	} {
		if got := string(settled([]byte(page))); got != want {
			t.Errorf("%q becomes %q, want %q", page, got, want)
		}
	}
}

func TestPagesAreSettled(t *testing.T) {
	x := newDesk(t)
	x.do(&hosting.CreateLocation{Name: "custom-home", Region: "eu"})
	x.do(&hosting.CreateFleet{Fleet: fleet.Fleet{ID: "fleet-1", Name: "\u202edev", CertificateType: "DISABLED", Region: "eu", Account: "1"}, Locations: []string{"custom-home"}})
	for _, path := range []string{"/fleets", "/fleets/fleet-1"} {
		if page := text(t, x.get(Prefix+path, x.signedInAs("LOOK"))); !strings.Contains(page, "\ufffddev") || strings.Contains(page, ">\u202e") || strings.Contains(page, " \u202e") {
			t.Errorf("%s is %s", path, page)
		}
		if part := text(t, x.refreshed(Prefix+path, x.signedInAs("LOOK"))); !strings.Contains(part, "\ufffddev") || strings.Contains(part, ">\u202e") {
			t.Errorf("%s is refreshed with %s", path, part)
		}
	}
}
